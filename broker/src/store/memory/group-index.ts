import { topicDigest } from "@stele/wire";
import type { Event, EventBatch } from "../../domain/event.ts";
import type { Position } from "../../domain/position.ts";
import type { Address, Topic } from "../../domain/topic.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { BatchRange, IndexedBlock, IndexHead, TopicPage } from "../../ports/store.ts";
import { type BatchRecord, lastPositionOf, planBlocks, type TopicRecord } from "../index-plan.ts";
import { lowerBound } from "./lower-bound.ts";

const lastPositionOfRecord = (record: BatchRecord): number => lastPositionOf(record.batch);
const lastSequenceOfRecord = (record: BatchRecord): number => record.batch.firstSequence + record.batch.count - 1;

/** One group's topics and batches. */
export class GroupIndex {
  #head: IndexHead | undefined;
  readonly #topics = new Map<TopicName, TopicRecord>();
  readonly #names: TopicName[] = [];
  readonly #nameByAddress = new Map<Address, TopicName>();
  readonly #namesByDigest = new Map<string, TopicName[]>();
  readonly #batches: BatchRecord[] = [];
  readonly #batchesByTopic = new Map<TopicName, BatchRecord[]>();

  get head(): IndexHead | undefined {
    return this.#head;
  }

  apply(blocks: readonly IndexedBlock[]): void {
    const plan = planBlocks(blocks, { head: this.#head, topicsTotal: this.#names.length, topics: this.#topics });
    for (const record of plan.opened) this.#insert(record);
    for (const record of plan.changed) this.#topics.set(record.topic.name, record);
    for (const record of plan.batches) {
      this.#batches.push(record);
      this.#batchesByTopic.get(record.batch.topic)?.push(record);
    }
    this.#head = plan.head;
  }

  findTopic(name: TopicName): Topic | undefined {
    return this.#topics.get(name)?.topic;
  }

  findTopicByAddress(address: Address): Topic | undefined {
    const name = this.#nameByAddress.get(address);
    return name === undefined ? undefined : this.findTopic(name);
  }

  findTopicsByDigest(digest: string): readonly Topic[] {
    return this.#topicsOf(this.#namesByDigest.get(digest) ?? []);
  }

  listTopics(offset: number, limit: number): TopicPage {
    return { total: this.#names.length, topics: this.#topicsOf(this.#names.slice(offset, offset + limit)) };
  }

  findBatch(event: Pick<Event, "topic" | "sequence">): EventBatch | undefined {
    const records = this.#batchesByTopic.get(event.topic) ?? [];
    const record = records[lowerBound(records, event.sequence, lastSequenceOfRecord)];
    return record !== undefined && record.batch.firstSequence <= event.sequence ? record.batch : undefined;
  }

  readBatches(range: BatchRange): readonly EventBatch[] {
    if (range.upTo <= range.after) return [];
    const records = range.topic === undefined ? this.#batches : (this.#batchesByTopic.get(range.topic) ?? []);
    const found: EventBatch[] = [];
    let bytes = 0;
    for (let index = lowerBound(records, range.after + 1, lastPositionOfRecord); index < records.length; index += 1) {
      const batch = records[index]?.batch;
      if (batch === undefined || batch.firstPosition > range.upTo) break;
      found.push(batch);
      bytes += batch.events.length;
      if (found.length >= range.batchesMax || bytes >= range.bytesMax) break;
    }
    return found;
  }

  countEventsAfter(name: TopicName, after: Position): number {
    const total = this.#topics.get(name)?.eventCount ?? 0;
    const records = this.#batchesByTopic.get(name) ?? [];
    const next = records[lowerBound(records, after + 1, lastPositionOfRecord)];
    if (next === undefined) return 0;
    return total - next.eventsBefore - Math.max(0, after - next.batch.firstPosition + 1);
  }

  #insert(record: TopicRecord): void {
    const { name, address } = record.topic;
    const digest = topicDigest(name);
    this.#topics.set(name, record);
    this.#names.push(name);
    this.#nameByAddress.set(address, name);
    this.#namesByDigest.set(digest, [...(this.#namesByDigest.get(digest) ?? []), name]);
    this.#batchesByTopic.set(name, []);
  }

  #topicsOf(names: readonly TopicName[]): readonly Topic[] {
    return names.flatMap((name) => this.findTopic(name) ?? []);
  }
}
