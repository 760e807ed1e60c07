import { BrokerError } from "@stele/wire";
import { groupIdCharactersMax } from "../../../domain/group-id.ts";
import { parseTopicName, topicCharactersMax } from "../../../domain/topic-name.ts";
import type { Caller } from "../../../engine/access/caller.ts";
import type { Broker, TopicCall } from "../../../engine/broker.ts";
import { knownTopicsMax, opensPerMinuteMax } from "./limits.ts";

type Topics = Pick<Broker, "exist" | "open">;

/** Names of topics that were there when the broker was last asked; shared by all connections. */
export class KnownTopics {
  readonly #names = new Set<string>();

  has(name: string): boolean {
    return this.#names.has(name);
  }

  add(name: string): void {
    if (name.length > nameCharactersMax) return; // its group is none: only the submission finds out
    this.#names.add(name);
    const [oldest] = this.#names;
    if (this.#names.size > knownTopicsMax && oldest !== undefined) this.#names.delete(oldest);
  }
}

export interface TopicOpenerDependencies {
  readonly broker: Topics;
  readonly caller: Caller;
  readonly known: KnownTopics;
  /** Whether a publish opens its topic. */
  readonly isAutomatic: boolean;
}

const minuteMs = 60_000;

/** Longest name that is remembered. Where publishes open no topic, nothing has checked its group. */
const nameCharactersMax = groupIdCharactersMax + 1 + topicCharactersMax;

/** Opens the topics that one connection publishes to, so many in a minute. */
export class TopicOpener {
  readonly #options: TopicOpenerDependencies;
  #openedInMinute = 0;
  #minuteEndsAt = 0;

  constructor(options: TopicOpenerDependencies) {
    this.#options = options;
  }

  /** Whether the topic was there when it was last asked for. */
  isKnown(call: TopicCall): boolean {
    return this.#options.known.has(nameOf(call));
  }

  /** Makes sure that the topic is there. @throws BrokerError 100102, 100103, 100106, 200300 when this connection has opened too many. */
  async ensure({ topic, groupId }: TopicCall): Promise<void> {
    const { broker, caller, known, isAutomatic } = this.#options;
    parseTopicName(topic); // what is no name is not remembered
    if (isAutomatic && !(await broker.exist(caller, { topic, groupId }))) {
      this.#count();
      await broker.open(caller, { topic, groupId });
    }
    known.add(nameOf({ topic, groupId }));
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
}

function nameOf({ topic, groupId = "" }: TopicCall): string {
  return `${groupId}/${topic}`;
}
