import type {
  AdminBlock,
  AdminDeadLetter,
  AdminEvent,
  AdminFigures,
  AdminGroups,
  AdminNodes,
  AdminRole,
  AdminSession,
  AdminSkipped,
  AdminSubscription,
  AdminSubscriptionDetails,
  AdminTopic,
  AdminTopicDetails,
  OrderResultBody,
} from "@stele/wire";
import { toBrokerError } from "@stele/wire";
import type { DeadLetter } from "../../../domain/dead-letter.ts";
import type { DeliveryOptions } from "../../../domain/delivery-options.ts";
import { eventBytesOf } from "../../../domain/event.ts";
import { blockOf } from "../../../domain/position.ts";
import { withoutSecrets } from "../../../domain/receiver.ts";
import { readSecrets } from "../../../domain/signing-secret.ts";
import type { Topic } from "../../../domain/topic.ts";
import type {
  BlockView,
  GroupView,
  ListedSubscription,
  NodePage,
  NodeView,
  OrderResult,
  SessionView,
  SubscriptionDetails,
  TopicDetails,
} from "../../../engine/operate/calls.ts";
import type { AttemptRecord } from "../../../engine/deliver/attempt-history.ts";
import type { PlacedEvent } from "../../../engine/placed-event.ts";
import type { SkippedEntriesResult } from "../../../engine/broker.ts";
import { nobody } from "../../../engine/access/caller.ts";
import type { Role } from "../../../engine/access/role-table.ts";
import { type Figure, figureIntervalMs } from "../../../engine/operate/figures.ts";
import { toEventBody } from "../../shared/results.ts";

export function toSubscription(listed: ListedSubscription): AdminSubscription {
  const { lastAttempt } = listed;
  return {
    ...toFields(listed),
    ...(lastAttempt && { lastAttempt: toAttempt({ ...lastAttempt, excerpt: undefined }) }),
  };
}

function toFields({ subscription, lag, node, waitingSince, nextAttemptAt }: ListedSubscription) {
  const { id, groupId, filter, delivery, state, principal, cursor, failingSince, retryAt } = subscription;
  const webhook = delivery.kind === "webhook" ? delivery : undefined;
  const older = webhook?.secret === undefined ? undefined : readSecrets(webhook.secret).older;
  const failing = {
    since: toTime(failingSince),
    attempts: subscription.failedAttempts,
    ...(retryAt > 0 && { notBefore: toTime(retryAt) }),
  };
  return {
    id,
    groupId,
    kind: webhook?.format ?? "RESTful",
    topic: filter,
    url: withoutSecrets(webhook?.url ?? ""),
    hasSecret: webhook?.secret !== undefined || state === "locked",
    ...(older !== undefined && { olderSecretUntil: toTime(older.until) }),
    ...toOptions(webhook?.options),
    state,
    ...(principal !== undefined && { owner: principal }),
    ...(node !== undefined && { node }),
    cursor,
    cursorBlock: blockOf(cursor),
    lag,
    notified: subscription.notifiedCount,
    ...(subscription.notifiedCount > 0 && { notifiedAt: toTime(subscription.notifiedAt) }),
    createdAt: toTime(subscription.createdAt),
    ...(failingSince > 0 && { failing }),
    ...(waitingSince !== undefined && { waitingSince: toTime(waitingSince) }),
    ...(nextAttemptAt !== undefined && { nextAttemptAt: toTime(nextAttemptAt) }),
  };
}

function toOptions({ form, batchEvents, skipAfter, ...options }: DeliveryOptions = {}) {
  return {
    ...(form && { format: form }),
    ...options,
    ...(batchEvents && { batch: batchEvents }),
    ...(skipAfter && { onFailure: "skip" as const, attemptsMax: skipAfter }),
  };
}

export function toDeadLetter({ eventId, topic, position, attempts, reason, failedAt }: DeadLetter): AdminDeadLetter {
  return { eventId, topic, position, block: blockOf(position), attempts, reason, failedAt: toTime(failedAt) };
}

export function toSubscriptionDetails(details: SubscriptionDetails): AdminSubscriptionDetails {
  const { deadLetters, attempts } = details;
  return { ...toFields(details), deadLetters, attempts: attempts.map(toAttempt) };
}

function toAttempt({ at, durationMs, ...rest }: AttemptRecord) {
  return { at: toTime(at), durationMs: toMs({ durationMs }), ...rest };
}

export function toOrderResult(result: OrderResult, dryRun: boolean): OrderResultBody {
  const { id, events, unmatched, deadLetters, test, secret, error } = result;
  if (error === undefined) {
    const rest = {
      ...(unmatched !== undefined && { unmatched }),
      ...(deadLetters && { letters: deadLetters }),
      ...(test && { test: { ...test, durationMs: toMs(test) } }),
      ...(secret !== undefined && { secret }),
    };
    return { id, events, dryRun, ...rest };
  }
  const { code, message: detail } = toBrokerError(error);
  return { id, events, dryRun, error: { code, detail } };
}

export function toSession(view: SessionView): AdminSession {
  const { session, filters, isConnected, isSuspended, node, lag, waitingSince } = view;
  return {
    id: session.id,
    groupId: session.groupId,
    kind: session.protocol,
    ...(session.principal !== nobody && { owner: session.principal }),
    isConnected,
    isSuspended,
    ...(node !== undefined && { node }),
    cursor: session.cursor,
    cursorBlock: blockOf(session.cursor),
    lag,
    ...(waitingSince !== undefined && { waitingSince: toTime(waitingSince) }),
    createdAt: toTime(session.createdAt),
    filters: filters.map(({ id, filter, qos }) => ({ id, topic: filter, qos })),
  };
}

export function toTopic(topic: Topic): AdminTopic {
  return {
    name: topic.name,
    address: topic.address,
    sender: topic.sender,
    createdAt: toTime(topic.createdTimestamp),
    sequence: topic.sequence,
    block: topic.blockNumber,
    isClosed: topic.closed,
  };
}

export function toTopicDetails({ topic, rate, lastEventAt, writers, ...rest }: TopicDetails): AdminTopicDetails {
  return {
    ...toTopic(topic),
    ...rest,
    ...(rate && { rate: { events: rate.events, seconds: Math.round(rate.ms / 1_000) } }),
    ...(lastEventAt !== undefined && { lastEventAt: toTime(lastEventAt) }),
    ...(writers && { writers }),
  };
}

export function toEvent(event: PlacedEvent): AdminEvent {
  const { transactionHash, logIndex, publisher, firstSequence } = event.batch;
  const { sequence, position, blockNumber: block } = event;
  const indexInBatch = sequence - firstSequence;
  return { ...toEventBody(event), sequence, position, block, transactionHash, logIndex, indexInBatch, publisher };
}

export function toGroup({ chain, rollBackHistory, ledgerInfo, ...group }: GroupView): AdminGroups["items"][number] {
  return {
    ...group,
    rollBackHistory: rollBackHistory.map(({ at, fromBlock, toBlock, events }) => ({
      at: toTime(at),
      fromBlock,
      toBlock,
      ...(events !== undefined && { events }),
    })),
    ...(chain !== undefined && { chain: { ...chain } }),
    ...(ledgerInfo && { finality: ledgerInfo.finality }),
    ...(ledgerInfo?.account && { signer: toSigner(ledgerInfo.account) }),
  };
}

type GroupSigner = NonNullable<NonNullable<GroupView["ledgerInfo"]>["account"]>;

function toSigner({ address, balance, fees: { kind: _kind, ...fees }, transactionsUnderWay }: GroupSigner) {
  const texts = Object.entries(fees).map(([name, wei]) => [name, wei.toString()] as const);
  return {
    address,
    ...(balance !== undefined && { balance: balance.toString() }),
    fees: Object.fromEntries(texts),
    transactionsUnderWay,
  };
}

export function toSkipped({
  code,
  reason,
  blockNumber,
  address,
  ...entry
}: SkippedEntriesResult["entries"][number]): AdminSkipped {
  const { transactionHash, logIndex, sender } = entry;
  const place = { block: blockNumber, transactionHash, logIndex, topicAddress: address };
  return { reason: code, details: reason, ...place, ...(sender !== undefined && { sender }) };
}

export function toBlock({ block, isCut, batches }: BlockView): AdminBlock {
  return {
    block,
    isCut,
    batches: batches.map(({ batch, firstEventId }) => ({
      topic: batch.topic,
      firstSequence: batch.firstSequence,
      firstEventId,
      count: batch.count,
      bytes: eventBytesOf(batch),
      transactionHash: batch.transactionHash,
      logIndex: batch.logIndex,
      publisher: batch.publisher,
    })),
  };
}

export function toNodePage({ items, next, history }: NodePage): AdminNodes {
  return { items: items.map(toNode), ...(next !== undefined && { next }), history: history.map(toMemberChange) };
}

function toNode({ id, address, joinedAt, isOwn, roles }: NodeView): AdminNodes["items"][number] {
  return {
    ...(id !== undefined && { id }),
    ...(address !== undefined && { address }),
    ...(joinedAt !== undefined && { joinedAt: toTime(joinedAt) }),
    isOwn,
    roles: { ...roles, follows: [...roles.follows] },
  };
}

function toMemberChange({ at, node, what, groupId, subscriptions, from }: NodePage["history"][number]) {
  return {
    at: toTime(at),
    node,
    what,
    ...(groupId !== undefined && { groupId }),
    ...(subscriptions !== undefined && { subscriptions }),
    ...(from !== undefined && { from }),
  };
}

export function toRole({ rules, ...role }: Role): AdminRole {
  return { ...role, rules: rules.map(({ actions, ...rule }) => ({ ...rule, actions: [...actions] })) };
}

export function toFigures(figures: readonly Figure[]): AdminFigures {
  return { intervalMs: figureIntervalMs, figures: figures.map(({ at, ...rest }) => ({ at: toTime(at), ...rest })) };
}

function toMs({ durationMs }: { readonly durationMs: number }): number {
  return Math.round(durationMs * 100) / 100;
}

function toTime(ms: number): string {
  return new Date(ms).toISOString();
}
