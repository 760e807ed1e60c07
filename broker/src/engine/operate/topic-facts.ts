import type { Topic } from "../../domain/topic.ts";
import { before, endOfBlock, type Position, positionZero } from "../../domain/position.ts";
import { BriefCache } from "../../lib/brief-cache.ts";
import type { Pauses } from "../../lib/time-slices.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Store } from "../../ports/store.ts";
import type { TopicWriters } from "../../ports/topic-writers.ts";
import type { Group } from "../group.ts";
import { Deadline, untilAborted } from "../time.ts";
import type { TopicBytes, TopicRate } from "./calls.ts";

/** How long an answer of the chain is kept, in milliseconds. */
const answerAgeMsMax = 10_000;

/** Answers of the chain that are kept: about 200 bytes each. */
const answersMax = 1_000;

/** How long the chain may take for the writers of a topic, in milliseconds. */
const writersTimeoutMs = 5_000;

/** The events of the last five minutes make the rate of a topic. */
const rateMs = 300_000;

/** Batches of one read of a topic's size. */
const batchesReadMax = 500;

/** Such reads for one call, so 50,000 batches: the size of more is that of the newest. */
const sizeReadsMax = 100;

export interface TopicFactsOptions {
  readonly store: Pick<Store, "countEventsAfter" | "measureTopic">;
  readonly clock: Clock;
}

/** A place in the events of a group, and the time that it stands for. */
interface Since {
  readonly time: number;
  readonly position: Position;
}

/** What the chain and the index tell about a topic beside its row. The chain is asked at most once in ten seconds for each fact. */
export class TopicFacts {
  readonly #options: TopicFactsOptions;
  readonly #writers: BriefCache<TopicWriters | undefined>;
  readonly #times: BriefCache<number | undefined>;
  readonly #since: BriefCache<Since>;

  constructor(options: TopicFactsOptions) {
    this.#options = options;
    const kept = { now: () => options.clock.monotonic(), ageMsMax: answerAgeMsMax, entriesMax: answersMax };
    this.#writers = new BriefCache(kept);
    this.#times = new BriefCache(kept);
    this.#since = new BriefCache(kept);
  }

  /** Undefined if the chain does not tell. */
  findWriters(group: Group, { name }: Topic): Promise<TopicWriters | undefined> {
    return this.#writers
      .read(`${group.id} ${name}`, async () => {
        using deadline = new Deadline(this.#options.clock, writersTimeoutMs);
        return untilAborted(group.ledger.findWriters(name, deadline.signal), deadline.signal);
      })
      .catch(() => undefined);
  }

  /** When the block of the newest event was made; undefined without one, or if the chain does not tell. */
  async findLastTime(group: Group, { sequence, blockNumber }: Topic): Promise<number | undefined> {
    if (sequence === 0) return undefined;
    return this.#times.read(`${group.id} ${blockNumber}`, () => group.times.find(blockNumber));
  }

  /** Undefined if the chain does not tell when its blocks were made. */
  async findRate(group: Group, { name }: Topic): Promise<TopicRate | undefined> {
    try {
      const { time, position } = await this.#since.read(group.id, () => this.#findSince(group));
      const events = await this.#options.store.countEventsAfter(group.id, name, position);
      return { events, ms: this.#options.clock.now() - time };
    } catch {
      return undefined;
    }
  }

  /** Of its newest batches. */
  async measure(
    group: Group,
    { topic: { name }, slices }: { readonly topic: Topic; readonly slices: Pauses },
  ): Promise<TopicBytes> {
    const { store } = this.#options;
    let upTo = endOfBlock((await group.findHead())?.blockNumber ?? 0);
    let [bytes, batches] = [0, 0];
    for (let reads = 0; reads < sizeReadsMax; reads += 1) {
      const size = await store.measureTopic(group.id, { topic: name, upTo, batchesMax: batchesReadMax });
      bytes += size.byteCount;
      batches += size.batchCount;
      if (size.first === undefined || size.batchCount < batchesReadMax) return { bytes, batches, isCut: false };
      upTo = before(size.first);
      await slices.pause();
    }
    return { bytes, batches, isCut: true };
  }

  async #findSince(group: Group): Promise<Since> {
    const time = this.#options.clock.now() - rateMs;
    const head = Math.max(0, (await group.findHead())?.blockNumber ?? 0);
    const block = await group.times.findBlockAt(time, head);
    return { time, position: block === 0 ? positionZero : endOfBlock(block - 1) };
  }
}
