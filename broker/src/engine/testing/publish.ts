import type { PublishCall, PublishResult } from "../broker.ts";
import type { CalledBroker } from "./as-caller.ts";

/** Publishes, and returns a promise of the result. */
export function publish(broker: Pick<CalledBroker, "submit">, call: PublishCall): Promise<PublishResult> {
  return new Promise((resolve, reject) => {
    broker.submit(call, (outcome) => {
      if (outcome.status === "REFUSED") reject(outcome.error);
      else resolve(outcome);
    });
  });
}
