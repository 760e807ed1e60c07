import type { Caller } from "../../engine/access/caller.ts";
import type { Broker, PublishCall } from "../../engine/broker.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Will } from "./codec/packet.ts";
import { toLogged } from "./lost-publishes.ts";
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

/** A copy of a will that outlasts the bytes it came in. */
export function keepWill(will: Will): Will {
  const { correlationData } = will.properties;
  const kept = correlationData && { correlationData: Buffer.from(correlationData) };
  return { ...will, payload: Buffer.from(will.payload), properties: { ...will.properties, ...kept } };
}

/** What a will publishes now. */
export function toWillCall(will: Will, { groupId, prefix }: Pick<WillContext, "groupId" | "prefix">): PublishCall {
  const extensions = toExtensions(will, { prefix, now: Date.now() });
  return { topic: will.topic, groupId, content: will.payload, extensions, mayBeEmpty: true };
}

/** Publishes a will; nobody is left to be told of a failure, so the log is. */
export function publishWill(will: Will, context: WillContext): void {
  const { broker, caller, opener, logger } = context;
  const { topic } = will;
  const failed = (error: unknown): void => logger.warn("MQTT will not published", { topic: toLogged(topic), error });
  const submit = (): void => {
    broker.submit(caller, toWillCall(will, context), (outcome) => {
      if (outcome.status === "REFUSED") failed(outcome.error);
    });
  };
  opener.ensure(topic).then(submit).catch(failed);
}
