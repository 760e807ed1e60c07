import type { Topic } from "../../domain/topic.ts";
import { before, beforeBlock, endOfBlock, type Position } from "../../domain/position.ts";
import { BriefCache } from "../../lib/brief-cache.ts";
import type { Pauses } from "../../lib/time-slices.ts";
import { untilAborted } from "../../lib/until-aborted.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Store } from "../../ports/store.ts";
import type { TopicWriters } from "../../ports/topic-writers.ts";
import type { Group } from "../group.ts";
import { Deadline } from "../time.ts";
import type { TopicBytes, TopicRate } from "./calls.ts";

/** How long an answer of the chain is cached, in milliseconds. */
const answerAgeMsMax = 10_000;

/** Maximum number of cached answers of the chain, about 200 bytes each. */
const answersMax = 1_000;

/** How long the chain may take to give the writers of a topic, in milliseconds. */
const writersTimeoutMs = 5_000;

/** Time over which the rate of a topic is measured, in milliseconds. */
const rateMs = 300_000;

/** Maximum number of batches per read of a topic's size. */
const batchesReadMax = 500;

/** Maximum number of reads for the size of one topic: 50,000 batches. In a larger topic, only the newest batches count. */
const sizeReadsMax = 100;

export interface TopicFactsOptions {
  readonly store: Pick<Store, "countEventsAfter" | "measureTopic">;
  readonly clock: Clock;
}

/** A time, and the place in the events of a group at that time. */
interface Since {
  readonly time: number;
  readonly position: Position;
}

/** Finds facts about a topic that its row does not hold. Asks the chain for each fact at most once in ten seconds. */
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

  /** The writers of a topic; undefined if the chain does not answer. */
  findWriters(group: Group, { name }: Topic): Promise<TopicWriters | undefined> {
    return this.#writers
      .read(`${group.id} ${name}`, async () => {
        using deadline = new Deadline(this.#options.clock, writersTimeoutMs);
        return untilAborted(group.ledger.findWriters(name, deadline.signal), deadline.signal);
      })
      .catch(() => undefined);
  }

  /** Time of the block of the newest event; undefined without an event, or if the chain does not answer. */
  async findLastTime(group: Group, { sequence, blockNumber }: Topic): Promise<number | undefined> {
    if (sequence === 0) return undefined;
    return this.#times.read(`${group.id} ${blockNumber}`, () => group.times.find(blockNumber));
  }

  /** Undefined if the chain does not give the times of its blocks, or if the store fails. */
  async findRate(group: Group, { name }: Topic): Promise<TopicRate | undefined> {
    try {
      const { time, position } = await this.#since.read(group.id, () => this.#findSince(group));
      const events = await this.#options.store.countEventsAfter(group.id, name, position);
      return { events, ms: this.#options.clock.now() - time };
    } catch {
      return undefined;
    }
  }

  /** Measures the bytes and the number of a topic's batches; of a topic with more than 50,000, only the newest 50,000 (`isCut`). */
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
    return { time, position: beforeBlock(block) };
  }
}
