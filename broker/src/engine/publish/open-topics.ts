import { BrokerError, isBrokerError, quote, toBrokerError, topicDigest } from "@stele/wire";
import type { Address, Topic } from "../../domain/topic.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import { BoundedMap } from "../../lib/bounded-map.ts";
import type { Logger } from "../../lib/logger.ts";
import type { TopicOpening } from "../../ports/ledger.ts";
import type { IndexProgress } from "../index-progress.ts";
import { answerAll } from "./answer-all.ts";

/** Maximum number of open topics of one group in memory, about 300 bytes each. At the limit, the oldest entry is removed. */
const openTopicsMax = 65_536;

/** What a publish needs of its topic. */
export interface OpenTopic {
  readonly name: TopicName;
  readonly address: Address;
  /** Digest of the name, for eventIds. */
  readonly digest: string;
  /** Set for a topic that the index does not have: its first batch opens the topic. */
  readonly opening?: TopicOpening | undefined;
}

/** Called with the topic once it is known to be open or can be opened, or with the error that prevents a publish. */
export type OnFound = (found: OpenTopic | BrokerError) => void;

/** Prepares to open a missing topic in the transaction of its first publish. */
export type OpenMissing = (name: TopicName) => Promise<TopicOpening>;

/** A publish that waits for its topic. */
interface WaitingCaller {
  /** Bytes of the publish: content and extensions. */
  readonly bytes: number;
  readonly onFound: OnFound;
  /** Opens a missing topic. Undefined if the caller must not open it: then the caller gets 100101. */
  readonly open?: OpenMissing | undefined;
}

export interface OpenTopicsOptions {
  /** Reads a topic from the index. */
  readonly read: (name: TopicName) => Promise<Topic | undefined>;
  readonly progress: Pick<IndexProgress, "version">;
  /** Maximum number of callers that wait for reads, and of bytes that they publish. */
  readonly waitingMax: number;
  readonly waitingBytesMax: number;
  readonly logger: Logger;
}

/**
 * The topics of one group that were open when the index was last asked, so that a publish finds its topic at once. Only open topics are kept, and the chain has
 * the last word: it refuses a batch of a topic that was closed since, and then the topic is forgotten. So a stale entry costs a refused batch, and never a
 * wrong answer. A rollback of the index clears the cache: a publish may have to open a topic that the rollback removed.
 */
export class OpenTopics {
  readonly #options: OpenTopicsOptions;
  readonly #known = new BoundedMap<string, OpenTopic>(openTopicsMax);
  /** The version of the index that has the known topics. */
  #version = 0;
  /** Callers whose topic is being read, in the order in which they came. */
  readonly #waiting = new Map<TopicName, WaitingCaller[]>();
  #waitingCount = 0;
  #waitingBytes = 0;

  constructor(options: OpenTopicsOptions) {
    this.#options = options;
  }

  /** The topic; undefined if it is not in memory, even while earlier callers wait for it: then the caller must call {@link read} too. */
  find(name: string): OpenTopic | undefined {
    this.#forgetOld();
    return this.#known.get(name);
  }

  /** Calls back in a later turn of the event loop; callers of one topic in the order of their calls. @throws BrokerError 200300 if too much waits. */
  read(name: TopicName, caller: WaitingCaller): void {
    const { waitingMax, waitingBytesMax } = this.#options;
    if (this.#waitingCount >= waitingMax || this.#waitingBytes + caller.bytes > waitingBytesMax) {
      const details = `${this.#waitingCount} publishes of ${this.#waitingBytes} bytes wait for the index`;
      throw new BrokerError("busy", { details });
    }
    this.#waitingCount += 1;
    this.#waitingBytes += caller.bytes;
    const others = this.#waiting.get(name);
    if (others !== undefined) {
      others.push(caller);
      return;
    }
    this.#waiting.set(name, [caller]);
    void this.#serve(name);
  }

  /** Forgets a topic, so that the next publish reads it from the index. */
  forget(name: TopicName): void {
    this.#known.delete(name);
  }

  /** Never rejects. A caller that arrives during a read may know of a later opening, so a read that finds no open topic does not answer it. */
  async #serve(name: TopicName): Promise<void> {
    // Keep the list while answering its callers: if a callback adds a caller, this loop must serve it, not a second loop.
    for (const callers = this.#waiting.get(name) ?? []; callers.length > 0; ) {
      const { length } = callers;
      const { version } = this.#options.progress;
      const found = await this.#read(name);
      if (!(found instanceof BrokerError)) {
        // Keep the topic in the turn of the callbacks: no later caller may find it before the earlier callers have their answers.
        this.#keep(found, version);
        this.#answer(name, { count: callers.length, found });
        continue;
      }
      const isMissing = isBrokerError(found, "topicNotExist");
      const opener = isMissing ? callers.findIndex(({ open }, index) => open !== undefined && index < length) : -1;
      this.#answer(name, { count: opener < 0 ? length : opener, found });
      if (opener >= 0) await this.#open(name);
    }
    this.#waiting.delete(name);
  }

  /** Lets the first caller open the topic. The others read again: the topic may be in the index by then. */
  async #open(name: TopicName): Promise<void> {
    const opening = await this.#waiting.get(name)?.[0]?.open?.(name).catch(toBrokerError);
    if (opening === undefined) return;
    const digest = topicDigest(name);
    const found = opening instanceof BrokerError ? opening : { name, address: opening.address, digest, opening };
    this.#answer(name, { count: 1, found });
  }

  /** Answers the first `count` callers of a topic. */
  #answer(
    name: TopicName,
    { count, found }: { readonly count: number; readonly found: OpenTopic | BrokerError },
  ): void {
    const callers = this.#waiting.get(name) ?? [];
    const served = callers.splice(0, count);
    this.#waitingCount -= served.length;
    this.#waitingBytes -= served.reduce((sum, { bytes }) => sum + bytes, 0);
    answerAll(served, ({ onFound }) => onFound(found), this.#options.logger);
  }

  async #read(name: TopicName): Promise<OpenTopic | BrokerError> {
    try {
      const topic = await this.#options.read(name);
      const refusal = { details: quote(name), hints: ["Open it first."] };
      if (topic === undefined) return new BrokerError("topicNotExist", refusal);
      if (topic.closed) return new BrokerError("topicClosed", refusal);
      return { name, address: topic.address, digest: topicDigest(name) };
    } catch (error) {
      return toBrokerError(error);
    }
  }

  #forgetOld(): void {
    const { version } = this.#options.progress;
    if (version === this.#version) return;
    this.#known.clear();
    this.#version = version;
  }

  /** `version` is that of the index before the topic was read. */
  #keep(topic: OpenTopic, version: number): void {
    this.#forgetOld();
    if (version === this.#version) this.#known.set(topic.name, topic);
  }
}
