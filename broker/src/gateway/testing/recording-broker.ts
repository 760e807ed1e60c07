import { formatEventId, type Proof } from "@stele/wire";
import type { Event } from "../../domain/event.ts";
import { defaultGroupId } from "../../domain/group-id.ts";
import { toPosition } from "../../domain/position.ts";
import { parseSubscriptionId } from "../../domain/subscription.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import type { Topic } from "../../domain/topic.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import type { Caller } from "../../engine/access/caller.ts";
import type { Broker, ProofResult, SubscriptionStatus } from "../../engine/broker.ts";
import type { SkippedEntry } from "../../ports/store.ts";
import { createFakeBroker } from "./fake-broker.ts";

export const sampleEventId = formatEventId({ topicDigest: "2cf24dba", sequence: 59, blockNumber: 1124 });
export const sampleSubscriptionId = parseSubscriptionId("0b3a1f5e-7c5d-4d0e-9f61-3f8f7b0f2a11");

export const sampleTopic: Topic = {
  name: parseTopicName("hello"),
  address: `0x${"a1".repeat(20)}`,
  sender: `0x${"b2".repeat(20)}`,
  createdTimestamp: 1_790_000_000_000,
  sequence: 59,
  blockNumber: 1124,
  closed: false,
};

export const sampleSubscription: SubscriptionStatus = {
  id: sampleSubscriptionId,
  groupId: defaultGroupId,
  filter: parseTopicFilter("a/#"),
  delivery: { kind: "webhook", format: "RESTful", url: "http://127.0.0.1:9/", secret: "not to be listed" },
  state: "active",
  cursor: toPosition(3, 0),
  notifiedCount: 12,
  notifiedAt: Date.UTC(2026, 1, 3, 4, 5, 6, 789),
  failedAttempts: 0,
  failedMs: 0,
  failingSince: 0,
  retryAt: 0,
  owner: undefined,
  epoch: 0,
  createdAt: 0,
  notifyingCount: 7,
};

const sampleEvent: Event = {
  topic: sampleTopic.name,
  sequence: 59,
  blockNumber: 1124,
  position: toPosition(1124, 0),
  content: Buffer.from('{"n":1}'),
  extensions: [["svc-format", "json"]],
};

const sampleProof: ProofResult = {
  event: { ...sampleEvent, eventId: sampleEventId },
  index: 1,
  chain: {
    registry: `0x${"c3".repeat(20)}`,
    publisher: `0x${"a7".repeat(20)}`,
    path: [new Uint8Array(32)],
    transactionIndex: 0,
    logPlace: 2,
    nodes: [Uint8Array.of(0xc0)],
    header: Uint8Array.of(0xc0),
  },
};

/** The documented form of `sampleProof`. */
export const sampleProofBody: Proof = {
  version: 1,
  registry: `0x${"c3".repeat(20)}`,
  publisher: `0x${"a7".repeat(20)}`,
  event: {
    topic: "hello",
    content: "0x7b226e223a317d",
    extensions: [["svc-format", "json"]],
    eventId: sampleEventId,
  },
  batch: { index: 1, path: [`0x${"00".repeat(32)}`] },
  receipt: { transactionIndex: 0, logPlace: 2, nodes: ["0xc0"] },
  header: "0xc0",
};

const sampleSkippedEntry: SkippedEntry = {
  code: "wrong-count",
  reason: "2 events where 3 were claimed",
  address: sampleTopic.address,
  sender: `0x${"c3".repeat(20)}`,
  blockNumber: 1120,
  transactionHash: `0x${"d4".repeat(32)}`,
  logIndex: 5,
};

/** One call that the broker received. */
export interface RecordedCall {
  readonly operation: string;
  readonly call: unknown;
}

/**
 * A broker that records its calls and their callers, and answers with the samples above. `overrides` replace operations. The broker does not record calls of
 * replaced operations and of `listSubscriptions`.
 */
export function createRecordingBroker(overrides: Partial<Broker> = {}) {
  const calls: RecordedCall[] = [];
  const callers: Caller[] = [];
  const record =
    <Result>(operation: string, result: Result) =>
    (caller: Caller, call: unknown): Promise<Result> => {
      callers.push(caller);
      calls.push({ operation, call });
      return Promise.resolve(result);
    };
  const broker = createFakeBroker({
    open: record("open", true),
    close: record("close", true),
    exist: record("exist", true),
    state: record("state", sampleTopic),
    list: record("list", { total: 1, topics: [sampleTopic], pageIndex: 0, pageSize: 10 }),
    submit: (caller, call, onSettled) => {
      callers.push(caller);
      calls.push({ operation: "publish", call });
      queueMicrotask(() => onSettled({ topic: "hello", eventId: sampleEventId, status: "SUCCESS" }));
    },
    subscribe: record("subscribe", sampleSubscriptionId),
    unSubscribe: record("unSubscribe", undefined),
    getEvent: record("getEvent", { ...sampleEvent, eventId: sampleEventId }),
    getProof: record("getProof", sampleProof),
    listSubscriptions: () => Promise.resolve([{ address: undefined, subscriptions: [sampleSubscription] }]),
    listSkippedEntries: record("listSkippedEntries", { groupId: defaultGroupId, entries: [sampleSkippedEntry] }),
    ...overrides,
  });
  return { broker, calls, callers };
}
