import type { TopicName } from "../domain/topic-name.ts";

/** A block does not continue a topic of the index: logs of earlier blocks are missing, or the topic is damaged. */
export class UnfitBlockError extends Error {
  readonly topic: TopicName;

  constructor(topic: TopicName, what: string) {
    const reason = "a node of the chain left out logs, or the index is damaged";
    super(`index: topic ${JSON.stringify(topic)} ${what}; ${reason}`);
    this.name = "UnfitBlockError";
    this.topic = topic;
  }
}
