import { isBrokerError } from "@stele/wire";
import type { EventBatch } from "../domain/event.ts";
import { eventsPerBlockMax, toPosition } from "../domain/position.ts";
import { isBeyondLastSequence } from "../domain/sequence.ts";
import type { Address, Topic } from "../domain/topic.ts";
import { parseTopicName, type TopicName } from "../domain/topic-name.ts";
import type { LedgerBlock, LedgerEntry } from "../ports/ledger.ts";
import type { IndexedBlock, SkippedEntry } from "../ports/store.ts";

/**
 * Converts chain blocks to index blocks. `known` are the indexed topics that occur in these blocks, by contract address. `taken` are the names of new topics in
 * these blocks that an indexed topic already has. Anybody may write to the chain, so this skips topics whose names break the rules or are taken, the events of
 * such topics, and batches that do not decode or exceed a limit. The same ledger blocks give the same result on every node. Nodes with different limits get
 * different ledger blocks from one chain, but the same positions.
 */
export function indexBlocks(
  blocks: readonly LedgerBlock[],
  known: ReadonlyMap<Address, TopicName>,
  taken: ReadonlySet<TopicName> = new Set(known.values()),
): readonly IndexedBlock[] {
  const topics = { known, opened: new Map<Address, TopicName>(), taken: new Set(taken) };
  return blocks.map((block) => {
    const draft = new BlockDraft(block, topics);
    for (const entry of block.entries) draft.add(entry);
    return draft.finish();
  });
}

/** Topics known so far: `opened` and `taken` grow with each topic that the blocks open. */
interface KnownTopics {
  readonly known: ReadonlyMap<Address, TopicName>;
  readonly opened: Map<Address, TopicName>;
  readonly taken: Set<TopicName>;
}

class BlockDraft {
  readonly #block: LedgerBlock;
  readonly #topics: KnownTopics;
  readonly #opened: Topic[] = [];
  readonly #closed: IndexedBlock["closed"][number][] = [];
  readonly #batches: EventBatch[] = [];
  readonly #skippedSequences: IndexedBlock["skippedSequences"][number][] = [];
  readonly #skippedEntries: SkippedEntry[] = [];
  #eventCount = 0;

  constructor(block: LedgerBlock, topics: KnownTopics) {
    this.#block = block;
    this.#topics = topics;
  }

  add(entry: LedgerEntry): void {
    if (entry.kind === "topic-opened") {
      this.#open(entry);
      return;
    }
    const { opened, known } = this.#topics;
    const topic = opened.get(entry.address) ?? known.get(entry.address);
    if (topic === undefined) {
      this.#leave(entry, { code: "topic-not-indexed", reason: "topic is not indexed" });
      return;
    }
    if (entry.kind === "events-committed" || entry.kind === "events-malformed") this.#take(entry, topic);
    else this.#closed.push({ name: topic, closed: entry.kind === "topic-closed" });
  }

  finish(): IndexedBlock {
    const { number, hash } = this.#block;
    return {
      number,
      hash,
      opened: this.#opened,
      closed: this.#closed,
      batches: this.#batches,
      skippedSequences: this.#skippedSequences,
      ...(this.#skippedEntries.length === 0 ? {} : { skippedEntries: this.#skippedEntries }),
    };
  }

  #open(entry: LedgerEntry & { kind: "topic-opened" }): void {
    const name = findTopicName(entry.name);
    if (name === undefined) {
      this.#leave(entry, { code: "topic-name-refused", reason: "topic name breaks the rules" });
      return;
    }
    if (this.#topics.taken.has(name)) {
      this.#leave(entry, { code: "topic-name-taken", reason: "another topic has this name" });
      return;
    }
    this.#topics.opened.set(entry.address, name);
    this.#topics.taken.add(name);
    this.#opened.push({
      name,
      address: entry.address,
      sender: entry.sender,
      createdTimestamp: this.#block.timestamp,
      sequence: 0,
      blockNumber: 0,
      closed: false,
    });
  }

  /**
   * Indexes a batch or skips it. A batch beyond the highest sequence records no skipped sequences: every later batch of the topic is beyond it too.
   */
  #take(entry: LedgerEntry & { kind: "events-committed" | "events-malformed" }, topic: TopicName): void {
    if (isBeyondLastSequence(entry.firstSequence, entry.count)) {
      this.#leave(entry, {
        code: "sequence-too-high",
        reason: `more than ${Number.MAX_SAFE_INTEGER} events of a topic`,
      });
    } else if (entry.kind === "events-committed") this.#commit(entry, topic);
    else this.#skip(entry, topic);
  }

  #commit(entry: LedgerEntry & { kind: "events-committed" }, topic: TopicName): void {
    const place = this.#takeRoom(entry.count);
    if (place === undefined) {
      this.#leave(entry, { code: "block-full", reason: `more than ${eventsPerBlockMax} events in a block` });
      this.#skippedSequences.push({ name: topic, firstSequence: entry.firstSequence, count: entry.count });
      return;
    }
    this.#batches.push({
      topic,
      firstSequence: entry.firstSequence,
      firstPosition: toPosition(this.#block.number, place),
      count: entry.count,
      blockNumber: this.#block.number,
      transactionHash: entry.transactionHash,
      logIndex: entry.logIndex,
      publisher: entry.publisher,
      events: entry.events,
    });
  }

  /**
   * Reserves positions for `count` events. Returns the first event's index in the block; undefined if they do not fit. After that no later batch fits
   * either, so if the last batch of a transaction is indexed, all its batches are.
   */
  #takeRoom(count: number): number | undefined {
    const place = this.#eventCount;
    const isFull = place + count > eventsPerBlockMax;
    this.#eventCount = isFull ? eventsPerBlockMax : place + count;
    return isFull ? undefined : place;
  }

  /** A batch beyond the limits uses up its positions: limits may differ between nodes, but positions of other events must not. */
  #skip(entry: LedgerEntry & { kind: "events-malformed" }, topic: TopicName): void {
    if (entry.fault === "beyond-limits") this.#takeRoom(entry.count);
    this.#leave(entry, { code: entry.fault, reason: entry.reason });
    this.#skippedSequences.push({ name: topic, firstSequence: entry.firstSequence, count: entry.count });
  }

  #leave(entry: LedgerEntry, why: Pick<SkippedEntry, "code" | "reason">): void {
    const { address, transactionHash, logIndex } = entry;
    const place = { address, blockNumber: this.#block.number, transactionHash, logIndex };
    this.#skippedEntries.push({ ...why, ...senderOf(entry), ...place });
  }
}

function senderOf(entry: LedgerEntry): Pick<SkippedEntry, "sender"> {
  if (entry.kind === "topic-opened") return { sender: entry.sender };
  return "publisher" in entry ? { sender: entry.publisher } : {};
}

/** The name; undefined if it breaks the rules. */
export function findTopicName(text: string): TopicName | undefined {
  try {
    return parseTopicName(text);
  } catch (error) {
    if (isBrokerError(error)) return undefined;
    throw error;
  }
}
