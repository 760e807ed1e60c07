import { type EventBatch, lastPositionOf } from "../../domain/event.ts";
import { blockOf, fromStored, positionZero } from "../../domain/position.ts";
import type { DeliveryOptions } from "../../domain/delivery-options.ts";
import { findReceiver } from "../../domain/receiver.ts";
import {
  type Delivery,
  type Failure,
  interfaceTypeOf,
  type ListedProtocol,
  type Subscription,
  webhookFormats,
} from "../../domain/subscription.ts";
import type { Hash, Topic } from "../../domain/topic.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { VanishedBatch } from "../../domain/vanished-events.ts";
import type { BatchRecord, TopicRecord } from "../index-plan.ts";
import { checksumOfBytes } from "../../lib/bytes-checksum.ts";
import { fillChecksum, isIntactSubscription, progressCheck, withChecksum } from "./row-checksums.ts";
import type { BatchKey, BatchTable, SubscriptionTable, TopicChange, TopicRow } from "./schema.ts";

// Casts restore the branded types: only this store writes these tables.

/** A topic with its key in the tables. */
export interface KeyedTopic extends TopicRecord {
  readonly topicId: number;
}

/** The row without its key, which the database assigns. */
export function toTopicRow(groupId: string, record: TopicRecord): Omit<TopicRow, "topic_id"> {
  const { topic, digest, ordinal, eventCount } = record;
  // All fields in one literal: a spread of the fields beside the checksum allocated 700 bytes more.
  return fillChecksum("topics", {
    checksum: 0,
    group_id: groupId,
    ordinal,
    name: topic.name,
    digest,
    address: topic.address,
    sender: topic.sender,
    created_timestamp: topic.createdTimestamp,
    sequence: topic.sequence,
    block_number: topic.blockNumber,
    closed: topic.closed ? 1 : 0,
    event_count: eventCount,
  });
}

/** The columns that change, and the checksum of the whole row. */
export function toTopicChange(groupId: string, topicId: number, record: TopicRecord): TopicChange {
  const { sequence, block_number, closed, event_count, checksum } = toTopicRow(groupId, record);
  return { topic_id: topicId, sequence, block_number, closed, event_count, checksum };
}

export function fromTopicRow(row: TopicRow): KeyedTopic {
  const topic = {
    name: row.name as TopicName,
    address: row.address as Topic["address"],
    sender: row.sender as Topic["sender"],
    createdTimestamp: row.created_timestamp,
    sequence: row.sequence,
    blockNumber: row.block_number,
    closed: row.closed !== 0,
  };
  return { topic, topicId: row.topic_id, digest: row.digest, ordinal: row.ordinal, eventCount: row.event_count };
}

export function toBatchRow(groupId: string, topicId: number, record: BatchRecord): BatchTable {
  const { batch, eventsBefore, number } = record;
  const row = {
    checksum: 0, // In one literal, as in toTopicRow.
    group_id: groupId,
    ordinal: number,
    first_position: batch.firstPosition,
    last_position: lastPositionOf(batch),
    topic_id: topicId,
    first_sequence: batch.firstSequence,
    events_before: eventsBefore,
    byte_count: batch.events.length,
    transaction_hash: batch.transactionHash,
    log_index: batch.logIndex,
    publisher: batch.publisher,
    events_checksum: checksumOfBytes(batch.events),
    events: batch.events,
  };
  return fillChecksum("batches", row, batch.topic);
}

export function toBatchKey(groupId: string, batch: EventBatch): BatchKey {
  return {
    group_id: groupId,
    last_position: lastPositionOf(batch),
    first_sequence: batch.firstSequence,
    transaction_hash: batch.transactionHash,
    events_checksum: checksumOfBytes(batch.events),
  };
}

/** The columns from which `fromBatchRow` makes a batch. */
type BatchRow = PlaceRow & Pick<BatchTable, "publisher" | "events">;
type PlaceRow = Pick<
  BatchTable,
  "first_position" | "last_position" | "first_sequence" | "transaction_hash" | "log_index"
>;

export function fromBatchRow(row: BatchRow, topic: string): EventBatch {
  const publisher = row.publisher as EventBatch["publisher"];
  return { ...fromPlaceRow(row, topic), publisher, events: row.events };
}

/** A batch without its events. */
export function fromPlaceRow(row: PlaceRow, topic: string): VanishedBatch {
  const firstPosition = fromStored(row.first_position);
  return {
    topic: topic as TopicName,
    firstSequence: row.first_sequence,
    firstPosition,
    count: row.last_position - row.first_position + 1,
    blockNumber: blockOf(firstPosition),
    transactionHash: row.transaction_hash as Hash,
    logIndex: row.log_index,
  };
}

type DeliveryColumns = Pick<SubscriptionTable, "interface_type" | "url" | "receiver" | "secret" | "delivery_options">;

/** `url` holds the identifier of the session if `interface_type` is a session protocol. */
export function toDeliveryColumns(delivery: Delivery): DeliveryColumns {
  const interface_type = interfaceTypeOf(delivery);
  if (delivery.kind === "session") {
    return { interface_type, url: delivery.sessionId, receiver: null, secret: null, delivery_options: null };
  }
  const { url, secret = null, options } = delivery;
  const delivery_options = options === undefined ? null : JSON.stringify(options);
  return { interface_type, url, receiver: findReceiver(url) ?? null, secret, delivery_options };
}

export function toFailureColumns({ failedAttempts, failedMs, failingSince, retryAt }: Failure) {
  return { failed_attempts: failedAttempts, failed_ms: failedMs, failing_since: failingSince, retry_at: retryAt };
}

function fromDeliveryColumns(row: DeliveryColumns): Delivery {
  const format = webhookFormats.find((one) => one === row.interface_type);
  if (format !== undefined) {
    const callback = { kind: "webhook", format, url: row.url, secret: row.secret ?? undefined } as const;
    if (row.delivery_options === null) return callback;
    return { ...callback, options: JSON.parse(row.delivery_options) as DeliveryOptions };
  }
  return { kind: "session", protocol: row.interface_type as ListedProtocol, sessionId: row.url };
}

export function toSubscriptionRow(subscription: Subscription): SubscriptionTable {
  return withChecksum("subscriptions", {
    id: subscription.id,
    group_id: subscription.groupId,
    filter: subscription.filter,
    ...toDeliveryColumns(subscription.delivery),
    state: subscription.state,
    cursor: subscription.cursor,
    notified_count: subscription.notifiedCount,
    notified_at: subscription.notifiedAt,
    ...toFailureColumns(subscription),
    created_at: subscription.createdAt,
    owner: subscription.owner ?? null,
    epoch: subscription.epoch,
    wanted_by: null,
    principal: subscription.principal ?? null,
    progress_check: progressCheck({
      epoch: subscription.epoch,
      cursor: subscription.cursor,
      notified_count: subscription.notifiedCount,
      notified_at: subscription.notifiedAt,
      ...toFailureColumns(subscription),
    }),
  });
}

/** For a damaged row, returns a subscription in the state `damaged`. Only its identifier, group, owner and epoch come from the row. */
export function fromSubscriptionRow(row: SubscriptionTable): Subscription {
  if (!isIntactSubscription(row)) return damagedSubscription(row);
  return {
    id: row.id as Subscription["id"],
    groupId: row.group_id as Subscription["groupId"],
    filter: row.filter as Subscription["filter"],
    delivery: fromDeliveryColumns(row),
    state: row.state as Subscription["state"],
    cursor: fromStored(row.cursor),
    notifiedCount: row.notified_count,
    notifiedAt: row.notified_at,
    failedAttempts: row.failed_attempts,
    failedMs: row.failed_ms,
    failingSince: row.failing_since,
    retryAt: row.retry_at,
    createdAt: row.created_at,
    ...(row.principal !== null && { principal: row.principal }),
    owner: (row.owner ?? undefined) as Subscription["owner"],
    epoch: row.epoch,
  };
}

function damagedSubscription(row: SubscriptionTable): Subscription {
  return {
    id: row.id as Subscription["id"],
    groupId: toText(row.group_id) as Subscription["groupId"],
    filter: "#" as Subscription["filter"], // The stored filter may be damaged; this one is valid.
    delivery: { kind: "webhook", format: "RESTful", url: "", secret: undefined },
    state: "damaged",
    cursor: positionZero,
    notifiedCount: 0,
    notifiedAt: 0,
    failedAttempts: 0,
    failedMs: 0,
    failingSince: 0,
    retryAt: 0,
    createdAt: 0,
    owner: (row.owner ?? undefined) as Subscription["owner"],
    epoch: toEpoch(row.epoch),
  };
}

/** Replaces an epoch that damage made NULL or too large. It equals no other epoch. */
export const noEpoch = -1;

function toEpoch(value: number | null): number {
  return value !== null && Number.isSafeInteger(value) && value >= 0 ? value : noEpoch;
}

/** SQLite returns bytes for a text whose stored type is damaged. */
function toText(value: unknown): string {
  return typeof value === "string" ? value : "";
}
