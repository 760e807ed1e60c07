import type { FormEvent, ReactNode } from "react";
import { Dialog } from "../ui/dialog.tsx";
import { useSession, useSessionState } from "./session-context.tsx";

/** Asks for a key once the broker wants one. It stays in this tab. */
export function KeyDialog(): ReactNode {
  const session = useSession();
  const { isKeyWanted, hasKey } = useSessionState();
  if (!isKeyWanted) return null;
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const key = new FormData(event.currentTarget).get("key");
    if (typeof key !== "string" || key === "") return;
    session.setKey(key.trim());
  };
  return (
    <Dialog title="This broker asks for a key" onClose={() => {}}>
      <form onSubmit={submit}>
        {hasKey ? (
          <p role="alert" className="failure">
            The broker refused the key: it is wrong, revoked or expired.
          </p>
        ) : null}
        <label>
          Key or token
          <input name="key" type="password" required autoComplete="off" />
        </label>
        <p className="quiet-text">
          It stays in this tab, and is gone when you close it. An operator makes one by: stele key create
        </p>
        <div className="bar">
          <button type="submit">Continue</button>
        </div>
      </form>
    </Dialog>
  );
}
