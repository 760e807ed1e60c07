import type { Event } from "../domain/event.ts";
import type { TopicName } from "../domain/topic-name.ts";
import type { Topic } from "../domain/topic.ts";
import { untilAborted } from "../lib/until-aborted.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ledger } from "../ports/ledger.ts";
import type { EventOrigin, OriginSource } from "./broker.ts";
import type { BlockTimes } from "./block-times.ts";
import type { IndexProgress } from "./index-progress.ts";

/** Maximum number of cached topics, and of cached block times, about 150 bytes each. A cache that grows beyond it is cleared. */
const originsKeptMax = 10_000;

/** A read without a result that takes at least this long, in milliseconds, means that the chain hangs. */
const hangMsMin = 1_000;

export interface EventOriginsParts {
  readonly ledger: Pick<Ledger, "view">;
  readonly clock: Pick<Clock, "monotonic">;
  readonly times: BlockTimes;
  readonly progress: IndexProgress;
  /** @throws BrokerError 100101. */
  readonly getTopic: (name: TopicName) => Promise<Topic>;
}

type Placed = Pick<Event, "topic" | "blockNumber">;

/** Finds and caches the origins of a group's events. A rollback clears the cached block times. */
export class EventOrigins implements OriginSource {
  readonly #parts: EventOriginsParts;
  readonly #sources = new Map<TopicName, string>();
  readonly #times = new Map<number, number | undefined>();
  #version = -1;
  /** When the chain may be asked for a time again, in milliseconds of the monotonic clock. */
  #askAt = 0;
  /** When the chain last gave a time, by the same clock. */
  #answeredAt = -1;

  constructor(parts: EventOriginsParts) {
    this.#parts = parts;
  }

  /** Undefined if the origin must be loaded first. */
  find({ topic, blockNumber }: Placed): EventOrigin | undefined {
    this.#forgetOld();
    const source = this.#sources.get(topic);
    if (source === undefined || !this.#times.has(blockNumber)) return undefined;
    return { source, time: this.#times.get(blockNumber) };
  }

  /** If the chain does not answer, the origin has no time. @throws what the store throws. */
  async load({ topic, blockNumber }: Placed, signal: AbortSignal): Promise<EventOrigin> {
    const source = this.#sources.get(topic) ?? (await this.#loadSource(topic));
    const { version } = this.#parts.progress;
    const time = await this.#readTime(blockNumber, signal);
    this.#forgetOld();
    if (version === this.#parts.progress.version && time !== undefined) this.#times.set(blockNumber, time);
    return { source, time };
  }

  /**
   * Undefined if the chain gives no time. If it hangs, nobody asks again for as long as that took: otherwise it would hold up each block of a backlog until
   * the read's deadline. After a quick refusal, or if it has answered another read meanwhile, it may well give the next time.
   */
  async #readTime(blockNumber: number, signal: AbortSignal): Promise<number | undefined> {
    const { times, clock } = this.#parts;
    const startedAt = clock.monotonic();
    if (startedAt < this.#askAt) return undefined;
    const time = await untilAborted(times.find(blockNumber), signal);
    const endedAt = clock.monotonic();
    const tookMs = endedAt - startedAt;
    if (time !== undefined) [this.#askAt, this.#answeredAt] = [0, endedAt];
    else if (tookMs >= hangMsMin && this.#answeredAt < startedAt && !signal.aborted) this.#askAt = endedAt + tookMs;
    return time;
  }

  async #loadSource(topic: TopicName): Promise<string> {
    const { address } = await this.#parts.getTopic(topic);
    const { chainId = 0 } = this.#parts.ledger.view().facts;
    const source = `eip155:${chainId}:${address}`;
    this.#sources.set(topic, source);
    return source;
  }

  #forgetOld(): void {
    const { version } = this.#parts.progress;
    if (version !== this.#version || this.#times.size > originsKeptMax) this.#times.clear();
    if (this.#sources.size > originsKeptMax) this.#sources.clear();
    this.#version = version;
  }
}
