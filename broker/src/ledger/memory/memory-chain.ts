import { MalformedError, portableKeccak256 } from "@stele/eth";
import { decodeEvents } from "@stele/wire";
import type { Address, Hash } from "../../domain/topic.ts";
import type { Clock } from "../../ports/clock.ts";
import type { BatchFault, BatchOutcome, BlockRef, LedgerBlock, LedgerEntry } from "../../ports/ledger.ts";
import { Wakeup } from "../../lib/wakeup.ts";

/** The default publisher. */
const strangerAddress: Address = `0x${"57".repeat(20)}`;

/** A batch on the chain: the count that its publisher declared, which may be wrong, and arbitrary bytes. */
export interface ChainBatch {
  readonly address: Address;
  readonly count: number;
  readonly events: Uint8Array;
}

/** An entry without its place. */
type Unplaced = LedgerEntry extends infer Entry
  ? Entry extends LedgerEntry
    ? Omit<Entry, "address" | "transactionHash" | "logIndex">
    : never
  : never;

/** A reorg that removed blocks. */
export interface Cut {
  /** The newest remaining block. */
  readonly to: number;
  /** The newest block before the reorg. */
  readonly from: number;
}

/** Bytes of the shortest event: empty content and no extensions. The registry bounds `count` by it. */
const eventBytesMin = 3;

interface TopicRecord {
  sequence: number;
  closed: boolean;
}

/**
 * A chain in memory, which outlives the ledgers on it as a real one does. A call that changes the chain seals its block at once, so that the
 * outcome depends only on the order of the calls.
 */
export class MemoryChain {
  /** Woken after every block and every reorg. */
  readonly sealed = new Wakeup();
  readonly #blocks: LedgerBlock[] = [];
  readonly #cuts: Cut[] = [];
  readonly #topics = new Map<Address, TopicRecord>();
  readonly #clock: Clock;

  constructor(options: { readonly clock: Clock }) {
    this.#clock = options.clock;
    this.#seal([]);
  }

  get head(): number {
    return this.#blocks.length - 1;
  }

  /** Of the `blocksMax` blocks from `first` on: those with entries, block 0 if it is among them, and the last one. */
  read(first: number, blocksMax: number): readonly LedgerBlock[] {
    const blocks = this.#blocks.slice(first, first + Math.max(0, blocksMax));
    return blocks.filter(
      (block, index) => block.entries.length > 0 || block.number === 0 || index === blocks.length - 1,
    );
  }

  /** All reorgs, oldest first. */
  get cuts(): readonly Cut[] {
    return this.#cuts;
  }

  /** Removes the blocks after `to`; blocks sealed in their place have other hashes. */
  cutBack(to: number): void {
    this.#cuts.push({ to, from: this.head });
    this.#blocks.length = to + 1;
    this.#topics.clear();
    for (const entry of this.#blocks.flatMap((block) => block.entries)) this.#replay(entry);
    this.sealed.wake();
  }

  find(blockNumber: number): LedgerBlock | undefined {
    return this.#blocks[blockNumber];
  }

  hashOf(blockNumber: number): Hash | undefined {
    return this.#blocks[blockNumber]?.hash;
  }

  /** Opens or reopens a topic; returns the newest block, in which it is open. */
  open(name: string, sender: Address): number {
    const entry = this.#begin(name, { sender, logIndex: 0 });
    if (entry !== undefined) this.#seal([entry]);
    return this.head;
  }

  /** The entry by which the next block opens or reopens a topic; undefined if the topic is open. */
  #begin(
    name: string,
    { sender, logIndex }: { readonly sender: Address; readonly logIndex: number },
  ): LedgerEntry | undefined {
    const address = topicAddress(name);
    const topic = this.#topics.get(address);
    if (topic?.closed === false) return undefined;
    if (topic === undefined) this.#topics.set(address, { sequence: 0, closed: false });
    else topic.closed = false;
    const change = topic ? ({ kind: "topic-reopened" } as const) : ({ kind: "topic-opened", name, sender } as const);
    return this.#place(address, change, logIndex);
  }

  hasTopic(name: string): boolean {
    return this.#topics.has(topicAddress(name));
  }

  /** Closes a topic and returns the newest block; undefined if the topic was never opened. */
  close(name: string): number | undefined {
    const address = topicAddress(name);
    const topic = this.#topics.get(address);
    if (topic === undefined) return undefined;
    if (topic.closed) return this.head;
    topic.closed = true;
    this.#seal([this.#place(address, { kind: "topic-closed" })]);
    return this.head;
  }

  /** Publishes in one transaction, which opens `names` first. Commits even a batch that does not decode to its count. */
  publish(
    batches: readonly ChainBatch[],
    {
      publisher = strangerAddress,
      names = [],
    }: { readonly publisher?: Address; readonly names?: readonly string[] } = {},
  ): readonly BatchOutcome[] {
    const entries: LedgerEntry[] = names.flatMap(
      (name, logIndex) => this.#begin(name, { sender: publisher, logIndex }) ?? [],
    );
    const { number: blockNumber, hash: blockHash } = this.#next;
    const outcomes = batches.map((batch, index): BatchOutcome => {
      const logIndex = names.length + index;
      const topic = this.#topics.get(batch.address);
      const reason = refusal(topic, batch);
      if (topic === undefined || reason !== undefined) return { status: "rejected", reason: reason ?? "unknown-topic" };
      const firstSequence = topic.sequence + 1;
      topic.sequence += batch.count;
      const read = readBatch(batch);
      const claimed = { firstSequence, count: batch.count };
      const entry = { ...read, ...claimed, publisher };
      const placed = this.#place(batch.address, entry, logIndex);
      entries.push(placed);
      const { transactionHash } = placed;
      return { status: "committed", firstSequence, blockNumber, blockHash, transactionHash };
    });
    this.#seal(entries);
    return outcomes;
  }

  /** Like {@link publish}, but commits all batches or none: undefined if a batch would be rejected. With `names`, commits or rejects each batch on its own. */
  publishAll(
    batches: readonly ChainBatch[],
    options: { readonly publisher: Address; readonly names: readonly string[] },
  ): readonly BatchOutcome[] | undefined {
    const isRefused = batches.some((batch) => refusal(this.#topics.get(batch.address), batch) !== undefined);
    if (!isRefused || options.names.length > 0) return this.publish(batches, options);
    this.#seal([]);
    return undefined;
  }

  #place(address: Address, entry: Unplaced, logIndex = 0): LedgerEntry {
    return {
      ...entry,
      address,
      transactionHash: hashOf("transaction", `${this.#blocks.length} ${this.#cuts.length}`),
      logIndex,
    };
  }

  #replay(entry: LedgerEntry): void {
    if (entry.kind === "topic-opened") this.#topics.set(entry.address, { sequence: 0, closed: false });
    const topic = this.#topics.get(entry.address);
    if (topic === undefined) return;
    if ("count" in entry) topic.sequence += entry.count;
    else topic.closed = entry.kind === "topic-closed";
  }

  /** Seals a block without entries. */
  sealEmpty(): void {
    this.#seal([]);
  }

  /** The block that the next {@link #seal} appends. */
  get #next(): BlockRef {
    const number = this.#blocks.length;
    return { number, hash: hashOf("block", `${number} ${this.#cuts.length}`) };
  }

  #seal(entries: readonly LedgerEntry[]): void {
    const now = Math.floor(this.#clock.now() / 1000) * 1000;
    this.#blocks.push({
      ...this.#next,
      parentHash: this.#blocks.at(-1)?.hash ?? `0x${"0".repeat(64)}`,
      timestamp: Math.max(now, this.#blocks.at(-1)?.timestamp ?? 0),
      entries,
    });
    this.sealed.wake();
  }
}

/** The address of a topic, open or not. */
export function topicAddress(name: string): Address {
  return `0x${hashOf("topic", name).slice(-40)}`;
}

function hashOf(kind: string, what: string | number): Hash {
  return `0x${Buffer.from(portableKeccak256(Buffer.from(`${kind} ${what}`))).toString("hex")}`;
}

function refusal(
  topic: TopicRecord | undefined,
  batch: ChainBatch,
): "unknown-topic" | "closed-topic" | "empty-batch" | "count-too-large" | undefined {
  if (topic === undefined) return "unknown-topic";
  if (topic.closed) return "closed-topic";
  if (batch.count === 0) return "empty-batch";
  return batch.count * eventBytesMin > batch.events.length ? "count-too-large" : undefined;
}

function readBatch(
  batch: ChainBatch,
): { kind: "events-committed"; events: Uint8Array } | { kind: "events-malformed"; fault: BatchFault; reason: string } {
  try {
    const { length } = decodeEvents(batch.events);
    if (length === batch.count) return { kind: "events-committed", events: batch.events };
    return {
      kind: "events-malformed",
      fault: "wrong-count",
      reason: `${length} events where ${batch.count} were claimed`,
    };
  } catch (error) {
    if (error instanceof MalformedError)
      return { kind: "events-malformed", fault: "undecodable-batch", reason: error.message };
    throw error;
  }
}
