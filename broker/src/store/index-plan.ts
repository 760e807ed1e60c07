import type { EventBatch } from "../domain/event.ts";
import { advance, blockOf, type Position } from "../domain/position.ts";
import type { Topic } from "../domain/topic.ts";
import type { TopicName } from "../domain/topic-name.ts";
import type { IndexedBlock, IndexHead } from "../ports/store.ts";

/**
 * A topic with what a store keeps beside it. `ordinal` counts from 1 in the order of opening. `eventCount` counts the events that
 * are stored; it is less than the topic's sequence by the sequences that malformed batches took.
 */
export interface TopicRecord {
  readonly topic: Topic;
  readonly ordinal: number;
  readonly eventCount: number;
}

/** A batch with the topic's `ordinal`, and how many stored events the topic had before it. */
export interface BatchRecord {
  readonly batch: EventBatch;
  readonly ordinal: number;
  readonly eventsBefore: number;
}

/** What a group's index is before blocks are applied; `topics` holds at least those that {@link topicsNamedIn} tells. */
export interface IndexState {
  readonly head: IndexHead | undefined;
  readonly topicsTotal: number;
  readonly topics: ReadonlyMap<TopicName, TopicRecord>;
}

/** What to write: final states, each topic once. */
export interface IndexPlan {
  readonly head: IndexHead;
  readonly opened: readonly TopicRecord[];
  readonly changed: readonly TopicRecord[];
  readonly batches: readonly BatchRecord[];
}

/** The last position of a batch. */
export function lastPositionOf(batch: EventBatch): Position {
  return advance(batch.firstPosition, batch.count - 1);
}

/** Every topic that must be looked up to plan these blocks. */
export function topicsNamedIn(blocks: readonly IndexedBlock[]): ReadonlySet<TopicName> {
  const names = new Set<TopicName>();
  for (const block of blocks) {
    for (const topic of block.opened) names.add(topic.name);
    for (const entry of block.closed) names.add(entry.name);
    for (const batch of block.batches) names.add(batch.topic);
    for (const span of block.skipped) names.add(span.name);
  }
  return names;
}

/**
 * Works out what blocks change, so that every adapter keeps one rule. What cannot be, is an assertion: blocks that do not follow
 * the head, a topic that was never opened or is opened twice, a sequence with a gap, positions that do not ascend.
 */
export function planBlocks(blocks: readonly IndexedBlock[], state: IndexState): IndexPlan {
  const plan = new PlanUnderWay(state);
  for (const block of blocks) plan.add(block);
  return plan.finish();
}

interface Span {
  readonly name: TopicName;
  readonly firstSequence: number;
  readonly count: number;
  /** Undefined where the sequences were skipped. */
  readonly batch: EventBatch | undefined;
}

class PlanUnderWay {
  readonly #state: IndexState;
  readonly #opened = new Map<TopicName, TopicRecord>();
  readonly #changed = new Map<TopicName, TopicRecord>();
  readonly #batches: BatchRecord[] = [];
  #head: IndexHead | undefined;

  constructor(state: IndexState) {
    this.#state = state;
    this.#head = state.head;
  }

  add(block: IndexedBlock): void {
    const headNumber = this.#head?.blockNumber ?? -1;
    assert(block.number > headNumber, `block ${block.number} does not follow the head ${headNumber}`);
    for (const topic of block.opened) this.#open(topic);
    for (const { name, closed } of block.closed) {
      const record = this.#get(name);
      this.#set({ ...record, topic: { ...record.topic, closed } });
    }
    assertPositions(block);
    for (const span of spansOf(block)) this.#advance(span, block.number);
    this.#head = { blockNumber: block.number, hash: block.hash };
  }

  finish(): IndexPlan {
    assert(this.#head !== undefined, "no block to apply");
    return {
      head: this.#head,
      opened: [...this.#opened.values()],
      changed: [...this.#changed.values()],
      batches: this.#batches.toSorted((left, right) => left.batch.firstPosition - right.batch.firstPosition),
    };
  }

  #open(topic: Topic): void {
    assert(this.#find(topic.name) === undefined, `topic ${JSON.stringify(topic.name)} is opened twice`);
    const ordinal = this.#state.topicsTotal + this.#opened.size + 1;
    this.#opened.set(topic.name, { topic, ordinal, eventCount: 0 });
  }

  #advance(span: Span, blockNumber: number): void {
    const record = this.#get(span.name);
    const expected = record.topic.sequence + 1;
    assert(
      span.firstSequence === expected && span.count > 0,
      `topic ${JSON.stringify(span.name)} stands before ${expected}, not before ${span.firstSequence} (${span.count} events)`,
    );
    const sequence = record.topic.sequence + span.count;
    if (span.batch !== undefined) {
      this.#batches.push({ batch: span.batch, ordinal: record.ordinal, eventsBefore: record.eventCount });
    }
    const eventCount = span.batch === undefined ? record.eventCount : record.eventCount + span.count;
    this.#set({ ...record, eventCount, topic: { ...record.topic, sequence, blockNumber } });
  }

  #find(name: TopicName): TopicRecord | undefined {
    return this.#opened.get(name) ?? this.#changed.get(name) ?? this.#state.topics.get(name);
  }

  #get(name: TopicName): TopicRecord {
    const record = this.#find(name);
    assert(record !== undefined, `topic ${JSON.stringify(name)} was never opened`);
    return record;
  }

  #set(record: TopicRecord): void {
    const name = record.topic.name;
    (this.#opened.has(name) ? this.#opened : this.#changed).set(name, record);
  }
}

/** Batches and skipped sequences together; those of one topic ascend. */
function spansOf(block: IndexedBlock): readonly Span[] {
  const batches = block.batches.map((batch) => ({ ...batch, name: batch.topic, batch }));
  if (block.skipped.length === 0 && batches.length < 2) return batches;
  const spans: Span[] = [...batches, ...block.skipped.map((span) => ({ ...span, batch: undefined }))];
  return spans.toSorted((left, right) => left.firstSequence - right.firstSequence);
}

function assertPositions(block: IndexedBlock): void {
  let previous = -1;
  for (const batch of block.batches) {
    const place = `batch at ${batch.firstPosition} in block ${block.number}`;
    assert(
      blockOf(batch.firstPosition) === block.number && batch.blockNumber === block.number,
      `${place} lies elsewhere`,
    );
    assert(batch.firstPosition > previous, `${place} does not come after ${previous}`);
    previous = lastPositionOf(batch);
  }
}

function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(`index: ${message}`);
}
