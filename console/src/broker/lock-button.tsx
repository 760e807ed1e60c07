import type { ReactNode } from "react";
import { useSession, useSessionState } from "./session-context.tsx";
import { mayShow, useRights } from "./use-rights.ts";

/** A tab is read-only until somebody unlocks changes in it, so that nobody changes anything by accident. */
export function LockButton(): ReactNode {
  const session = useSession();
  const { isUnlocked } = useSessionState();
  const rights = useRights();
  if (!mayShow(rights, "publish") && !mayShow(rights, "admin")) return null;
  return (
    <button
      type="button"
      className={isUnlocked ? "quiet unlocked" : "quiet"}
      onClick={() => session.setUnlocked(!isUnlocked)}
    >
      {isUnlocked ? "Lock changes" : "Unlock changes"}
    </button>
  );
}
