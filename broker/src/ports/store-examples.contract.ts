import type { EventBatch } from "../domain/event.ts";
import { parseGroupId } from "../domain/group-id.ts";
import { advance, type Position, toPosition } from "../domain/position.ts";
import {
  type Delivery,
  parseSubscriptionId,
  type SessionDelivery,
  type ListedProtocol,
  type Subscription,
  type WebhookDelivery,
} from "../domain/subscription.ts";
import type { Hash, Topic } from "../domain/topic.ts";
import { parseTopicFilter } from "../domain/topic-filter.ts";
import { parseTopicName, type TopicName } from "../domain/topic-name.ts";
import type { IndexedBlock } from "./store.ts";

export const group = parseGroupId("1");
export const otherGroup = parseGroupId("2");
export const alpha = parseTopicName("alpha");
export const beta = parseTopicName("beta");
export const everyByte = Uint8Array.from({ length: 256 }, (_, index) => index);

export function hashOf(number: number): Hash {
  return `0x${number.toString(16).padStart(64, "0")}`;
}

export function topicOf(name: TopicName, number = 1): Topic {
  return {
    name,
    address: `0x${number.toString(16).padStart(40, "0")}`,
    sender: "0x00000000000000000000000000000000000000ff",
    createdTimestamp: 1_700_000_000_000 + number,
    sequence: 0,
    blockNumber: 0,
    closed: false,
  };
}

export function blockOf(number: number, changes: Partial<IndexedBlock> = {}): IndexedBlock {
  return { number, hash: hashOf(number), opened: [], closed: [], batches: [], skippedSequences: [], ...changes };
}

interface BatchPlace {
  readonly block: number;
  readonly index?: number;
  readonly sequence: number;
  readonly count: number;
  readonly events?: Uint8Array;
}

export function batchOf(topic: TopicName, place: BatchPlace): EventBatch {
  const { block, index = 0, sequence, count, events = everyByte } = place;
  return {
    topic,
    firstSequence: sequence,
    firstPosition: toPosition(block, index),
    count,
    blockNumber: block,
    transactionHash: hashOf(block * 1000 + index),
    logIndex: index,
    publisher: "0x00000000000000000000000000000000000000fe",
    events,
  };
}

export function webhookTo(changes: Partial<WebhookDelivery> = {}): WebhookDelivery {
  const url = "http://127.0.0.1:9/callback?a=%20'\"";
  return { kind: "webhook", format: "RESTful", url, secret: "whsec_c2VjcmV0", ...changes };
}

export function sessionOf(protocol: ListedProtocol): SessionDelivery {
  return { kind: "session", protocol, sessionId: `session of ${protocol}` };
}

type Changes<Kind extends Delivery> = Partial<Subscription> & { readonly delivery?: Kind };

export function subscriptionOf<Kind extends Delivery = WebhookDelivery>(
  number: number,
  changes: Changes<Kind> = {},
): Subscription & { readonly delivery: Kind } {
  const subscription: Subscription = {
    id: parseSubscriptionId(`00000000-0000-4000-8000-${number.toString(16).padStart(12, "0")}`),
    groupId: group,
    filter: parseTopicFilter("alpha/#"),
    delivery: webhookTo(),
    state: "active",
    cursor: toPosition(number, 7),
    notifiedCount: number,
    notifiedAt: 1_700_000_000_123,
    failedAttempts: 3,
    failedMs: 7_000,
    failingSince: 1_700_000_000_200,
    retryAt: 1_700_000_009_000,
    owner: undefined,
    epoch: 0,
    createdAt: 1_700_000_000_000 + number,
    ...changes,
  };
  return subscription as Subscription & { readonly delivery: Kind }; // A webhook unless the changes say otherwise.
}

/** Alpha: 1-3 in block 2, 4-5 in block 4, 6-7 skipped in block 5, 8 in block 6. Beta: 1-2 in block 2, 3 in block 4. */
export const history: readonly IndexedBlock[] = [
  blockOf(1, { opened: [topicOf(alpha, 1), topicOf(beta, 2)] }),
  blockOf(2, {
    batches: [
      batchOf(alpha, { block: 2, sequence: 1, count: 3 }),
      batchOf(beta, { block: 2, index: 3, sequence: 1, count: 2 }),
    ],
  }),
  blockOf(4, {
    batches: [
      batchOf(beta, { block: 4, sequence: 3, count: 1 }),
      batchOf(alpha, { block: 4, index: 1, sequence: 4, count: 2 }),
    ],
  }),
  blockOf(5, { skippedSequences: [{ name: alpha, firstSequence: 6, count: 2 }] }),
  blockOf(6, { batches: [batchOf(alpha, { block: 6, sequence: 8, count: 1 })] }),
];

/** Position of a topic's first event in the history after a position. */
export function firstAfter(topic: TopicName, after: Position): Position | undefined {
  const batches = history.flatMap((block) => block.batches).filter((batch) => batch.topic === topic);
  const positions = batches.flatMap(({ firstPosition, count }) =>
    Array.from({ length: count }, (_, index) => advance(firstPosition, index)),
  );
  return positions.find((position) => position > after);
}
