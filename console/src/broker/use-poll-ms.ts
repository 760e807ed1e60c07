import { isDenied } from "./describe-error.ts";
import { useSessionState } from "./session-context.tsx";

interface PolledQuery {
  readonly state: { readonly error: unknown };
}

/**
 * The interval of a poll. False while the broker refuses the key or the call: each call would only add a refusal to the broker's log and audit log. A refused
 * call runs again when somebody comes back to the tab with a key that the broker accepts, and when the caller's actions change. The console does not see a
 * change of the caller's rules alone.
 */
export function usePollMs(ms: number): (query: PolledQuery) => number | false {
  const { isKeyWanted } = useSessionState();
  return ({ state }) => (isKeyWanted || isDenied(state.error) ? false : ms);
}
