import { BrokerError } from "@stele/wire";
import type { Pauses } from "../../lib/time-slices.ts";
import type { Caller } from "../access/caller.ts";

/** Pauses for the work of one call. Once the caller has left, the next pause throws 200300, which ends the work. */
export function pausesFor({ signal }: Pick<Caller, "signal">, slices: Pauses): Pauses {
  return {
    pause: () => {
      if (signal.aborted) throw new BrokerError("busy", { details: "the caller no longer waits" });
      return slices.pause();
    },
  };
}
