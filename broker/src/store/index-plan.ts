import { topicDigest } from "@stele/wire";
import { type EventBatch, lastPositionOf } from "../domain/event.ts";
import { blockOf } from "../domain/position.ts";
import type { Hash, Topic } from "../domain/topic.ts";
import type { TopicName } from "../domain/topic-name.ts";
import type { BlockRef } from "../ports/ledger.ts";
import { UnfitBlockError } from "../ports/unfit-block-error.ts";
import {
  type IndexedBlock,
  type IndexHead,
  type RetainedChange,
  type RetainedPlace,
  reorganisationBlocksMax,
} from "../ports/store.ts";

/**
 * A topic with the store's data about it. `digest` is the digest of its name in eventIds. `ordinal` counts from 1 in the order of opening.
 * `eventCount` counts the stored events: the topic's sequence minus the sequences of malformed batches.
 */
export interface TopicRecord {
  readonly topic: Topic;
  readonly digest: string;
  readonly ordinal: number;
  readonly eventCount: number;
}

/** A batch with its topic's `ordinal`, the number of stored events of the topic before it, and its own number in the group, from 1. */
export interface BatchRecord {
  readonly batch: EventBatch;
  readonly ordinal: number;
  readonly eventsBefore: number;
  readonly number: number;
}

/** A head without the generation, which no block changes. */
type PlannedHead = Pick<IndexHead, "blockNumber" | "hash">;

/**
 * State of a group's index before blocks are applied. `topics` holds at least the topics of {@link topicsNamedIn}, and `retained` the retained
 * events of at least the topics of {@link topicsRetainedIn}.
 */
export interface IndexState {
  /** The head that the caller expects; undefined accepts any. */
  readonly after?: BlockRef | undefined;
  /** Whether the blocks are final: then the plan has no undo. */
  readonly isFinal?: boolean | undefined;
  readonly head: PlannedHead | undefined;
  readonly topicsTotal: number;
  readonly batchesTotal: number;
  readonly topics: ReadonlyMap<TopicName, TopicRecord>;
  readonly retained: ReadonlyMap<TopicName, RetainedPlace>;
}

/** The fields of a topic that a block may change, as they were before the block. */
export type TopicImage = Pick<TopicRecord, "ordinal" | "eventCount"> &
  Pick<Topic, "sequence" | "blockNumber" | "closed">;

/** How to undo one block. */
export interface BlockUndo {
  readonly number: number;
  readonly hash: Hash;
  /** Number of topics before the block; undefined if it opened none. */
  readonly topicsTotal: number | undefined;
  /** Topics that the block changed but did not open. */
  readonly images: readonly TopicImage[];
  /** Retained events before the block changed them; undefined if it changed none. */
  readonly retained?: readonly RetainedChange[] | undefined;
}

/** How to undo several blocks. */
export interface RollBackPlan extends Pick<BlockUndo, "topicsTotal" | "images"> {
  readonly retained: readonly RetainedChange[];
}

/** The changes to write: each changed topic once, in its final state. */
export interface IndexPlan {
  readonly head: PlannedHead;
  /** See {@link withinWindow}; none if the blocks are final. */
  readonly undo: readonly BlockUndo[];
  readonly opened: readonly TopicRecord[];
  readonly changed: readonly TopicRecord[];
  readonly batches: readonly BatchRecord[];
  readonly retained: readonly RetainedChange[];
}

/** Every topic that must be looked up to plan these blocks. */
export function topicsNamedIn(blocks: readonly IndexedBlock[]): ReadonlySet<TopicName> {
  const names = new Set<TopicName>();
  for (const block of blocks) {
    for (const topic of block.opened) names.add(topic.name);
    for (const entry of block.closed) names.add(entry.name);
    for (const batch of block.batches) names.add(batch.topic);
    for (const span of block.skippedSequences) names.add(span.name);
  }
  return names;
}

/** Every topic whose retained event the blocks change. */
export function topicsRetainedIn(blocks: readonly IndexedBlock[]): ReadonlySet<TopicName> {
  return new Set(blocks.flatMap(({ retained = [] }) => retained.map(({ name }) => name)));
}

/**
 * Computes the changes that blocks make, so that all adapters follow one rule.
 * @throws UnfitBlockError for a topic that was never opened or is opened twice, and for sequences that do not continue those of their topic.
 * @throws Error for impossible input: a head that is not `after`, blocks that do not follow the head, batches of another block, positions that do not ascend.
 */
export function planBlocks(blocks: readonly IndexedBlock[], state: IndexState): IndexPlan {
  const plan = new PlanUnderWay(state);
  for (const block of blocks) plan.add(block);
  return plan.finish();
}

/** Combines the undo records of several blocks, given in ascending order; the first may combine earlier blocks. */
export function planRollBack(undo: readonly Omit<BlockUndo, "number" | "hash">[]): RollBackPlan {
  const topicsTotal = undo.find((block) => block.topicsTotal !== undefined)?.topicsTotal;
  const images = new Map<number, TopicImage>();
  for (const block of undo.toReversed()) {
    for (const image of block.images) images.set(image.ordinal, image);
  }
  const last = topicsTotal ?? Number.POSITIVE_INFINITY;
  const retained = lastOfEach(undo.toReversed().flatMap((block) => block.retained ?? []));
  return { topicsTotal, images: [...images.values()].filter(({ ordinal }) => ordinal <= last), retained };
}

/**
 * Checks that the index has the block. `kept` is the newest block up to `number` to which the index can roll back. If it is undefined, the hash is not
 * compared: the index keeps none of these blocks, so no rollback can have removed the block. The index keeps every block with batches: if `kept` is an earlier
 * block, and the given block has batches, the index has another block of that number.
 * @throws Error if the index has another block of that number, or ends before it.
 */
export function assertHasBlock(
  { number, hash, batches }: Pick<IndexedBlock, "number" | "hash" | "batches">,
  { head, kept }: { readonly head: BlockRef | undefined; readonly kept: BlockRef | undefined },
): void {
  const isOther = kept !== undefined && kept.hash !== hash && (kept.number === number || batches.length > 0);
  if (isOther || (head?.number ?? -1) < number) throw new Error(`the chain has another block ${number} than the index`);
}

/** Drops blocks older than the rollback window, except the newest of them: the oldest block to which a rollback can go. */
export function withinWindow(undo: readonly BlockUndo[], head: Pick<IndexHead, "blockNumber">): readonly BlockUndo[] {
  const start = undo.findIndex(({ number }) => number >= head.blockNumber - reorganisationBlocksMax);
  return undo.slice(Math.max(0, start - 1));
}

/** The topic after further events. Names each field: V8 writes a field slowly into an object that began as a copy of another one. */
function withProgress(topic: Topic, { sequence, blockNumber }: Pick<Topic, "sequence" | "blockNumber">): Topic {
  const { name, address, sender, createdTimestamp, closed } = topic;
  return { name, address, sender, createdTimestamp, sequence, blockNumber, closed };
}

/** Restores a topic from its image. */
export function withImage(record: TopicRecord, image: TopicImage): TopicRecord {
  const { sequence, blockNumber, closed, eventCount } = image;
  return { ...record, eventCount, topic: { ...record.topic, sequence, blockNumber, closed } };
}

/** The last change of each topic. */
function lastOfEach(changes: readonly RetainedChange[]): readonly RetainedChange[] {
  return [...new Map(changes.map((change) => [change.name, change])).values()];
}

interface Span {
  readonly name: TopicName;
  readonly firstSequence: number;
  readonly count: number;
  /** The batch with these sequences; undefined if they were skipped. */
  readonly batch: EventBatch | undefined;
}

class PlanUnderWay {
  readonly #state: IndexState;
  readonly #opened = new Map<TopicName, TopicRecord>();
  readonly #changed = new Map<TopicName, TopicRecord>();
  readonly #batches: Omit<BatchRecord, "number">[] = [];
  readonly #undo: BlockUndo[] = [];
  readonly #retained = new Map<TopicName, RetainedChange>();
  /** The topics that the current block changed, as they were before it. */
  #before = new Map<TopicName, TopicRecord>();
  #head: PlannedHead | undefined;

  constructor(state: IndexState) {
    const { head, after } = state;
    assert(
      after === undefined || after.hash === head?.hash,
      () => `the head is not the expected block ${after?.number}`,
    );
    this.#state = state;
    this.#head = head;
  }

  add(block: IndexedBlock): void {
    const headNumber = this.#head?.blockNumber ?? -1;
    assert(block.number > headNumber, () => `block ${block.number} does not follow the head ${headNumber}`);
    this.#before = new Map();
    const topicsTotal = block.opened.length === 0 ? undefined : this.#topicsTotal;
    for (const topic of block.opened) this.#open(topic);
    for (const { name, closed } of block.closed) {
      const record = this.#get(name);
      this.#set({ ...record, topic: { ...record.topic, closed } });
    }
    assertPositions(block);
    for (const span of spansOf(block)) this.#advance(span, block.number);
    this.#head = { blockNumber: block.number, hash: block.hash };
    const retained = this.#retain(block);
    if (this.#state.isFinal === true) return;
    const images = this.#images(topicsTotal);
    this.#undo.push({ number: block.number, hash: block.hash, topicsTotal, images, retained });
  }

  finish(): IndexPlan {
    assert(this.#head !== undefined, () => "no block to apply");
    return {
      head: this.#head,
      undo: withinWindow(this.#undo, this.#head),
      opened: [...this.#opened.values()],
      changed: [...this.#changed.values()],
      batches: this.#batches
        .toSorted((left, right) => left.batch.firstPosition - right.batch.firstPosition)
        .map(({ batch, ordinal, eventsBefore }, index) => {
          return { batch, ordinal, eventsBefore, number: this.#state.batchesTotal + index + 1 };
        }),
      retained: [...this.#retained.values()],
    };
  }

  #open(topic: Topic): void {
    assertFits(topic.name, this.#find(topic.name) === undefined, () => "is opened twice");
    const digest = topicDigest(topic.name);
    this.#opened.set(topic.name, { topic, digest, ordinal: this.#topicsTotal + 1, eventCount: 0 });
  }

  /** Notes the block's changes of retained events. Returns the retained events of their topics before the block; undefined if it changes none. */
  #retain({ retained: changes }: IndexedBlock): readonly RetainedChange[] | undefined {
    const previous = changes?.map(({ name }) => ({ name, retained: this.#findRetained(name) }));
    for (const change of changes ?? []) this.#retained.set(change.name, change);
    return previous;
  }

  #findRetained(name: TopicName): RetainedPlace | undefined {
    const changed = this.#retained.get(name);
    return changed === undefined ? this.#state.retained.get(name) : changed.retained;
  }

  get #topicsTotal(): number {
    return this.#state.topicsTotal + this.#opened.size;
  }

  #images(topicsTotal = Number.POSITIVE_INFINITY): readonly TopicImage[] {
    const before = [...this.#before.values()].filter(({ ordinal }) => ordinal <= topicsTotal);
    return before.map(({ topic, ordinal, eventCount }) => {
      const { sequence, blockNumber, closed } = topic;
      return { ordinal, eventCount, sequence, blockNumber, closed };
    });
  }

  #advance(span: Span, blockNumber: number): void {
    const record = this.#get(span.name);
    const expected = record.topic.sequence + 1;
    assertFits(
      span.name,
      span.firstSequence === expected && span.count > 0,
      () => `continues with sequence ${expected}, not with ${span.firstSequence} (${span.count} events)`,
    );
    const sequence = record.topic.sequence + span.count;
    if (span.batch !== undefined) {
      this.#batches.push({ batch: span.batch, ordinal: record.ordinal, eventsBefore: record.eventCount });
    }
    const eventCount = span.batch === undefined ? record.eventCount : record.eventCount + span.count;
    const { topic, digest, ordinal } = record;
    this.#set({ topic: withProgress(topic, { sequence, blockNumber }), digest, ordinal, eventCount });
  }

  #find(name: TopicName): TopicRecord | undefined {
    return this.#opened.get(name) ?? this.#changed.get(name) ?? this.#state.topics.get(name);
  }

  #get(name: TopicName): TopicRecord {
    const record = this.#find(name);
    assertFits(name, record !== undefined, () => "was never opened");
    return record;
  }

  #set(record: TopicRecord): void {
    const name = record.topic.name;
    if (this.#state.isFinal !== true && !this.#before.has(name)) this.#before.set(name, this.#get(name));
    (this.#opened.has(name) ? this.#opened : this.#changed).set(name, record);
  }
}

/** The batches and skipped sequences of a block in one list, ascending for each topic. */
function spansOf(block: IndexedBlock): readonly Span[] {
  const batches = block.batches.map(toSpan);
  if (block.skippedSequences.length === 0 && batches.length < 2) return batches;
  const spans: Span[] = [...batches, ...block.skippedSequences.map((span) => ({ ...span, batch: undefined }))];
  return spans.toSorted((left, right) => left.firstSequence - right.firstSequence);
}

/** The span of a batch. Sets each field by name: if a field follows a spread, V8 makes a hidden class for each object, which costs 2 to 15 µs and 400 bytes. */
function toSpan(batch: EventBatch): Span {
  return { name: batch.topic, firstSequence: batch.firstSequence, count: batch.count, batch };
}

function assertPositions(block: IndexedBlock): void {
  let previous = -1;
  for (const batch of block.batches) {
    const place = () => `batch at ${batch.firstPosition} in block ${block.number}`;
    assert(
      blockOf(batch.firstPosition) === block.number && batch.blockNumber === block.number,
      () => `${place()} belongs to another block`,
    );
    assert(batch.firstPosition > previous, () => `${place()} does not come after ${previous}`);
    previous = lastPositionOf(batch);
  }
}

/** @throws Error unless the condition holds. `message` is a function, so that the thousands of assertions of a large block build no messages. */
function assert(condition: boolean, message: () => string): asserts condition {
  if (!condition) throw new Error(`index: ${message()}`);
}

function assertFits(topic: TopicName, condition: boolean, what: () => string): asserts condition {
  if (!condition) throw new UnfitBlockError(topic, what());
}
