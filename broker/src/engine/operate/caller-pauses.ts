import { BrokerError } from "@stele/wire";
import type { Pauses } from "../../lib/time-slices.ts";
import type { Caller } from "../access/caller.ts";

interface Checked {
  readonly slices: Pauses;
  /** Throws once the caller has lost its right to the call. */
  readonly checkRight: () => void;
}

/** Pauses for the work of one call. The next pause ends the work by an error: 200300 once the caller has left, or the error of `checkRight`. */
export function pausesFor({ signal }: Pick<Caller, "signal">, { slices, checkRight }: Checked): Pauses {
  return {
    pause: () => {
      if (signal.aborted) throw new BrokerError("busy", { details: "the caller no longer waits" });
      checkRight();
      return slices.pause();
    },
  };
}
