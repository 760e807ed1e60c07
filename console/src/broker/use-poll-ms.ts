import { useSessionState } from "./session-context.tsx";

/** The interval of a poll. False while the broker refuses the key: each call would only add a refusal to the broker's log and audit log. */
export function usePollMs(ms: number): number | false {
  return useSessionState().isKeyWanted ? false : ms;
}
