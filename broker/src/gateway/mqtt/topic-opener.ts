import { BrokerError } from "@stele/wire";
import { parseTopicName } from "../../domain/topic-name.ts";
import type { Caller } from "../../engine/access/caller.ts";
import type { Broker } from "../../engine/broker.ts";
import { knownTopicsMax, opensPerMinuteMax } from "./limits.ts";

type Topics = Pick<Broker, "exist" | "open">;

/** Names of topics that were there when the broker was last asked; shared by all connections of a listener. */
export class KnownTopics {
  readonly #names = new Set<string>();

  has(name: string): boolean {
    return this.#names.has(name);
  }

  add(name: string): void {
    this.#names.add(name);
    const [oldest] = this.#names;
    if (this.#names.size > knownTopicsMax && oldest !== undefined) this.#names.delete(oldest);
  }
}

export interface TopicOpenerParts {
  readonly broker: Topics;
  readonly caller: Caller;
  readonly known: KnownTopics;
  readonly groupId: string | undefined;
  /** Whether a publish opens its topic. */
  readonly isAutomatic: boolean;
}

const minuteMs = 60_000;

/** Opens the topics that one connection publishes to, so many in a minute. */
export class TopicOpener {
  readonly #parts: TopicOpenerParts;
  #openedInMinute = 0;
  #minuteEndsAt = 0;

  constructor(parts: TopicOpenerParts) {
    this.#parts = parts;
  }

  /** Whether the topic was there when it was last asked for. */
  isKnown(topic: string): boolean {
    return this.#parts.known.has(this.#nameOf(topic));
  }

  /** Makes sure that the topic is there. @throws BrokerError 100102, 100103, 100106, 200300 when this connection has opened too many. */
  async ensure(topic: string): Promise<void> {
    const { broker, caller, groupId, known, isAutomatic } = this.#parts;
    parseTopicName(topic); // what is no name is not remembered
    if (isAutomatic && !(await broker.exist(caller, { topic, groupId }))) {
      this.#count();
      await broker.open(caller, { topic, groupId });
    }
    known.add(this.#nameOf(topic));
  }

  #count(): void {
    const now = performance.now();
    if (now >= this.#minuteEndsAt) {
      this.#minuteEndsAt = now + minuteMs;
      this.#openedInMinute = 0;
    }
    this.#openedInMinute += 1;
    if (this.#openedInMinute <= opensPerMinuteMax) return;
    throw new BrokerError("busy", { details: `this connection opened ${opensPerMinuteMax} topics within a minute` });
  }

  #nameOf(topic: string): string {
    return `${this.#parts.groupId ?? ""}/${topic}`;
  }
}
