import { BrokerError } from "@stele/wire";
import type { Pauses } from "../../lib/time-slices.ts";
import type { Caller } from "../access/caller.ts";

/** The pauses of work for one caller: once nobody waits for the answer any more, the next one throws 200300 and so ends the work. */
export function pausesFor({ signal }: Pick<Caller, "signal">, slices: Pauses): Pauses {
  return {
    pause: () => {
      if (signal.aborted) throw new BrokerError("busy", { details: "the caller no longer waits" });
      return slices.pause();
    },
  };
}
