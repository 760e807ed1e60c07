import { isDenied } from "./describe-error.ts";
import { useSessionState } from "./session-context.tsx";

interface PolledQuery {
  readonly state: { readonly error: unknown };
}

/**
 * The interval of a poll. False while the broker refuses the key or the call: each call would only add a refusal to the broker's log and audit log. Somebody who
 * comes back to the tab asks again, and so does a change of the actions that the caller may do; a change of its rules alone is not seen.
 */
export function usePollMs(ms: number): (query: PolledQuery) => number | false {
  const { isKeyWanted } = useSessionState();
  return ({ state }) => (isKeyWanted || isDenied(state.error) ? false : ms);
}
