import { BrokerError, quote } from "@stele/wire";
import type { Extensions } from "../../domain/event.ts";
import { extensionsBytes } from "../../domain/event-rules.ts";
import { parseTopicName, type TopicName } from "../../domain/topic-name.ts";
import type { PublishCall, PublishResult } from "../broker.ts";
import type { EventIds } from "../event-ids.ts";
import type { Group, Groups } from "../group.ts";
import type { EngineLimits } from "../limits.ts";
import { isFateUnknown } from "./gatherer.ts";

export interface PublisherParts {
  readonly groups: Groups;
  readonly limits: EngineLimits;
  readonly eventIds: EventIds;
  /** What every extension key begins with. */
  readonly extensionPrefix: string;
}

/** Checks what a producer wants published, has it committed, and answers with the event's identifier. */
export class Publisher {
  readonly #parts: PublisherParts;

  constructor(parts: PublisherParts) {
    this.#parts = parts;
  }

  /**
   * Answers SUCCESS once the event is durable and getEvent finds it, TIMEOUT when its fate is not known in time.
   * @throws BrokerError 100101, 100102, 100103, 100106, 100112, 100200, 100201, 100204, 100206, 100306, 200202, 200205, 200211, 200300.
   */
  async publish(call: PublishCall): Promise<PublishResult> {
    const topic = parseTopicName(call.topic);
    const group = this.#parts.groups.get(call.groupId);
    this.#checkContent(call.content);
    this.#checkExtensions(call.extensions);
    try {
      return await this.#commit(group, { topic, call });
    } catch (error) {
      if (isFateUnknown(error)) return { topic, eventId: "", status: "TIMEOUT" };
      throw error;
    }
  }

  async #commit(group: Group, event: { topic: TopicName; call: PublishCall }): Promise<PublishResult> {
    const { topic, call } = event;
    const { address, closed } = await group.getTopic(topic);
    if (closed) throw new BrokerError("topicClosed", { details: quote(topic) });
    const payload = { content: call.content, extensions: call.extensions };
    const place = await group.gatherer.add({ topic, address, payload });
    return { topic, eventId: this.#parts.eventIds.of({ topic, ...place }), status: "SUCCESS" };
  }

  #checkContent(content: Uint8Array): void {
    const { contentBytesMax } = this.#parts.limits;
    if (content.byteLength === 0) throw new BrokerError("contentBlank");
    if (content.byteLength > contentBytesMax) {
      throw new BrokerError("contentTooLong", { details: `${content.byteLength} bytes, at most ${contentBytesMax}` });
    }
  }

  #checkExtensions(extensions: Extensions): void {
    const { extensionPrefix, limits } = this.#parts;
    for (const [key] of extensions) {
      if (!key.startsWith(extensionPrefix)) {
        throw new BrokerError("extensionKeyInvalid", {
          details: `${JSON.stringify(key)} does not begin with ${extensionPrefix}`,
        });
      }
    }
    const bytes = extensionsBytes(extensions);
    if (bytes > limits.extensionsBytesMax) {
      throw new BrokerError("extensionsTooLong", { details: `${bytes} bytes, at most ${limits.extensionsBytesMax}` });
    }
  }
}
