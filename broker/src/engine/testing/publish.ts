import type { Broker, PublishCall, PublishResult } from "../broker.ts";

/** Publishes, as a promise. */
export function publish(broker: Pick<Broker, "submit">, call: PublishCall): Promise<PublishResult> {
  return new Promise((resolve, reject) => {
    broker.submit(call, (outcome) => {
      if (outcome.status === "REFUSED") reject(outcome.error);
      else resolve(outcome);
    });
  });
}
