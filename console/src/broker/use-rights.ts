import type { Rights } from "@stele/client";
import { useQuery } from "@tanstack/react-query";
import { useSession, useSessionState, useStele } from "./session-context.tsx";

/** Rights may change while a page is open. */
const pollMs = 60_000;

/** What the caller may do; undefined until the broker has answered. */
export function useRights(): Rights | undefined {
  const session = useSession();
  const stele = useStele();
  const { data } = useQuery({
    queryKey: ["rights"],
    queryFn: async ({ signal }) => {
      const { isKeyWanted } = session.state;
      const rights = await stele.rights({ signal });
      // The broker accepts the caller again, because somebody has logged in in another tab. An answer to an earlier question would not show that.
      if (isKeyWanted) session.renew();
      return rights;
    },
    staleTime: pollMs, // Many views show what the rights allow, and mount with each opened event.
    refetchInterval: pollMs,
    refetchOnWindowFocus: "always", // Even while the key is refused: somebody may come back from a log-in in another tab.
  });
  return data;
}

/** Whether to show a view or form that needs a right. Until the rights are known, shows everything: the broker refuses calls that are not allowed. */
export function mayShow(rights: Rights | undefined, action: string): boolean {
  if (rights === undefined) return true;
  const isServed = rights.serves.includes(action === "admin" ? "operators" : "clients");
  return isServed && rights.actions.includes(action);
}

/** Why changes are disabled; undefined once somebody has unlocked them. */
export function useLockReason(): string | undefined {
  return useSessionState().isUnlocked ? undefined : "Read-only: unlock changes first";
}
