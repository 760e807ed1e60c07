import type { Caller } from "../../engine/access/caller.ts";
import type { Broker } from "../../engine/broker.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Will } from "./codec/packet.ts";
import { toExtensions } from "./mapping.ts";
import type { TopicOpener } from "./topic-opener.ts";

export interface WillContext {
  readonly broker: Pick<Broker, "submit">;
  readonly caller: Caller;
  readonly opener: TopicOpener;
  readonly groupId: string | undefined;
  readonly prefix: string;
  readonly logger: Logger;
}

/** Publishes a will; nobody is left to be told of a failure, so the log is. */
export function publishWill(will: Will, context: WillContext): void {
  const { broker, caller, opener, groupId, prefix, logger } = context;
  const { topic } = will;
  const failed = (error: unknown): void => logger.warn("MQTT will not published", { topic, error });
  const submit = (): void => {
    const extensions = toExtensions(will, { prefix, now: Date.now() });
    const call = { topic, groupId, content: Uint8Array.from(will.payload), extensions, mayBeEmpty: true };
    broker.submit(caller, call, (outcome) => {
      if (outcome.status === "REFUSED") failed(outcome.error);
    });
  };
  opener.ensure(topic).then(submit).catch(failed);
}
