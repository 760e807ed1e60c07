import { BrokerError } from "@stele/wire";
import type { Caller } from "../../../engine/access/caller.ts";
import type { Broker, TopicCall } from "../../../engine/broker.ts";
import { opensPerMinuteMax } from "./limits.ts";

export interface TopicOpenerDependencies {
  readonly broker: Pick<Broker, "exist" | "open">;
  readonly caller: Caller;
  /** Whether a publish opens its topic. */
  readonly isAutomatic: boolean;
}

const minuteMs = 60_000;

/** Opens the topics that one connection publishes to, at most {@link opensPerMinuteMax} a minute. */
export class TopicOpener {
  readonly #options: TopicOpenerDependencies;
  #openedInMinute = 0;
  #minuteEndsAt = 0;

  constructor(options: TopicOpenerDependencies) {
    this.#options = options;
  }

  get isAutomatic(): boolean {
    return this.#options.isAutomatic;
  }

  /**
   * Opens a topic for a transaction if it does not exist and publishes open topics. @throws BrokerError of {@link Broker.exist} and
   * {@link Broker.open}; 200300 when this connection has opened too many topics in a minute.
   */
  async ensure({ topic, groupId }: TopicCall): Promise<void> {
    const { broker, caller, isAutomatic } = this.#options;
    if (!isAutomatic || (await broker.exist(caller, { topic, groupId }))) return;
    this.count();
    await broker.open(caller, { topic, groupId });
  }

  /** Counts an opening. @throws BrokerError 200300 when this connection has opened too many topics in a minute. */
  count(): void {
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
