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

/**
 * How long one reader may spend on reads without a result, in milliseconds. After that, it does not ask the chain for the same time. A single read that hangs
 * until its deadline uses this up.
 */
const patienceMs = 4_000;

export interface EventOriginsParts {
  readonly ledger: Pick<Ledger, "view">;
  readonly clock: Pick<Clock, "monotonic">;
  readonly times: BlockTimes;
  readonly progress: IndexProgress;
  /** @throws BrokerError 100101. */
  readonly getTopic: (name: TopicName) => Promise<Topic>;
}

type Placed = Pick<Event, "topic" | "blockNumber">;

interface LoadOptions {
  readonly patience: Patience;
  readonly signal: AbortSignal;
}

/** Finds and caches the origins of a group's events. A rollback clears the cached block times. */
export class EventOrigins {
  readonly #parts: EventOriginsParts;
  readonly #sources = new Map<TopicName, string>();
  readonly #times = new Map<number, number>();
  #version = -1;

  constructor(parts: EventOriginsParts) {
    this.#parts = parts;
  }

  /** Each reader has its own patience: while its reads hang, the chain may answer other readers, whose blocks are newer. */
  createReader(): OriginSource {
    const patience = new Patience(this.#parts.clock);
    return { find: (event) => this.#find(event), load: (event, signal) => this.#load(event, { patience, signal }) };
  }

  #find({ topic, blockNumber }: Placed): EventOrigin | undefined {
    this.#forgetOld();
    const source = this.#sources.get(topic);
    const time = this.#times.get(blockNumber);
    return source === undefined || time === undefined ? undefined : { source, time };
  }

  async #load({ topic, blockNumber }: Placed, { patience, signal }: LoadOptions): Promise<EventOrigin> {
    const source = this.#sources.get(topic) ?? (await this.#loadSource(topic));
    this.#forgetOld();
    const { version } = this.#parts.progress;
    const read = (): Promise<number | undefined> => untilAborted(this.#parts.times.find(blockNumber), signal);
    const time = this.#times.get(blockNumber) ?? (await patience.run(read));
    this.#forgetOld();
    if (version === this.#parts.progress.version && time !== undefined) this.#times.set(blockNumber, time);
    return { source, time };
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

/** Bounds how long reads without a result delay one reader: otherwise each block of a backlog could wait until the deadline of its read. */
class Patience {
  readonly #clock: Pick<Clock, "monotonic">;
  /** How long reads without a result took. Forgotten {@link patienceMs} after the last of them. */
  #failedMs = 0;
  /** When the last of them ended, in milliseconds of the monotonic clock. */
  #failedAt = 0;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Undefined without a read once the patience is used up. */
  async run(read: () => Promise<number | undefined>): Promise<number | undefined> {
    const startedAt = this.#clock.monotonic();
    if (startedAt - this.#failedAt >= patienceMs) this.#failedMs = 0;
    if (this.#failedMs >= patienceMs) return undefined;
    const time = await read();
    if (time !== undefined) return time;
    this.#failedAt = this.#clock.monotonic();
    this.#failedMs += this.#failedAt - startedAt;
    return undefined;
  }
}
