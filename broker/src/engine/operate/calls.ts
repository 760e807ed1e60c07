import type { EventId } from "@stele/wire";
import type { NodeId } from "../../domain/node.ts";
import type { DeliveryOptionsCall } from "../../domain/delivery-options.ts";
import type { EventBatch } from "../../domain/event.ts";
import type { GroupId } from "../../domain/group-id.ts";
import type { Position } from "../../domain/position.ts";
import type { SessionProtocol, Subscription, SubscriptionState, WebhookFormat } from "../../domain/subscription.ts";
import type { Topic } from "../../domain/topic.ts";
import type { GroupHealth } from "../broker.ts";
import type { AttemptRecord } from "../deliver/attempt-history.ts";
import type { LedgerInfo } from "../../ports/ledger-info.ts";
import type { TopicWriters } from "../../ports/topic-writers.ts";
import type { SeenMemberChange } from "../member-history.ts";
import type { SeenRollBack } from "../rollback-history.ts";
import type { ConnectedSession } from "../connected-session.ts";
import type { ConcernedEvents } from "./concerned-events.ts";

/** Asks for the page of a list that begins after `after`, the `next` of the previous page. */
export interface PageCall {
  readonly after: string | undefined;
  readonly limit: number;
}

/** A page of a list. It may be shorter than `limit`, even empty; the list ends when `next` is undefined. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next: string | undefined;
}

/** Which callback subscriptions a call concerns, in the client's words. An undefined field matches all. */
export interface SearchCall {
  readonly groupId?: string | undefined;
  readonly state?: SubscriptionState | undefined;
  readonly kind?: WebhookFormat | undefined;
  /** The subscription's topic or pattern, compared as text. */
  readonly topic?: string | undefined;
  readonly prefix?: string | undefined;
  /** A topic whose events the subscription receives. */
  readonly matches?: string | undefined;
  /** Host of the url, with a port if that must match too. */
  readonly host?: string | undefined;
  readonly owner?: string | undefined;
  /** Address of the node that delivers the subscription. */
  readonly node?: string | undefined;
  /** Least number of matching events that wait. */
  readonly lagMin?: number | undefined;
  /** Least time for which the receiver has failed, in milliseconds. */
  readonly failingMsMin?: number | undefined;
}

/** A callback subscription with the progress that this node knows. */
export interface SubscriptionView {
  readonly subscription: Subscription;
  /** Matching events after the cursor. */
  readonly lag: number;
  /** Position of the oldest event after the cursor; undefined if none waits. */
  readonly waitingFrom: Position | undefined;
  /** Address of the node that delivers the subscription; undefined if none does, or if this is a single node. */
  readonly node: string | undefined;
}

/** A callback subscription as a list shows it. */
export interface ListedSubscription extends SubscriptionView {
  /** Time of the block of the oldest event after the cursor; undefined if none waits, or if the chain does not answer in time. */
  readonly waitingSince: number | undefined;
  /** When the next attempt is due; undefined unless this node will make it, or the receiver asked for the delay. */
  readonly nextAttemptAt: number | undefined;
  /** The newest attempt of this node. */
  readonly lastAttempt: AttemptRecord | undefined;
}

export interface SubscriptionDetails extends ListedSubscription {
  /** Number of the subscription's dead letters. */
  readonly deadLetters: number;
  /** Attempts of this node since it began to deliver the subscription, newest first; empty if another node delivers it. */
  readonly attempts: readonly AttemptRecord[];
}

/** A place in the events of a subscription: `OFFSET_FIRST`, `OFFSET_LAST`, an eventId in text, a sequence, or a time in milliseconds since the epoch. */
export type PlaceOrder = string | { readonly sequence: number } | { readonly time: number };

/** An operator's order for a subscription. */
export type SubscriptionOrder =
  /** Stops delivery until an operator resumes the subscription. */
  | { readonly kind: "pause" }
  /** Delivers again from the cursor, whether the subscription was paused or suspended. */
  | { readonly kind: "resume" }
  /** Makes the next attempt at once; also resumes a suspended subscription. */
  | { readonly kind: "retry" }
  /** Moves the cursor past the event `to`, or past the next event if `to` is undefined. */
  | { readonly kind: "skip"; readonly to: PlaceOrder | undefined }
  /** Moves the cursor back, so that the event and all later ones are delivered again. */
  | { readonly kind: "replay"; readonly from: PlaceOrder }
  /** Changes what is delivered, and where and how. */
  | { readonly kind: "change"; readonly change: DeliveryChange }
  /** Sends a test event now, also for a paused or suspended subscription. */
  | { readonly kind: "test" }
  | DeadLetterOrder;

/** Delivers dead letters again, or removes them: the dead letter of the event `eventId`, or all if `eventId` is undefined. */
export interface DeadLetterOrder {
  readonly kind: "redeliver" | "discard";
  readonly eventId: string | undefined;
}

/** Changes to a subscription. An undefined field keeps its value. */
export interface DeliveryChange extends DeliveryOptionsCall {
  /** A topic or pattern. */
  readonly topic?: string | undefined;
  /** A secret belongs to its url: a new url drops the secret, unless this change gives one. */
  readonly url?: string | undefined;
  /** Null removes the secret; `generate` lets the broker make a new one. */
  readonly secret?: string | null | undefined;
  /** How long the previous secret also signs, in milliseconds, if the url stays the same. */
  readonly rotationMs?: number | undefined;
  readonly kind?: WebhookFormat | undefined;
}

export interface OrderCall {
  readonly order: SubscriptionOrder;
  /** Whether to change nothing, and only return what the order would concern. */
  readonly isDryRun: boolean;
}

/** The result of an order, or of its dry run. */
export interface OrderResult extends ConcernedEvents {
  readonly id: Subscription["id"];
  /** Set by an order for dead letters. */
  readonly deadLetters?: DeadLettersResult | undefined;
  /** Set by the order to send a test event. */
  readonly test?: TestResult | undefined;
  /** The secret that the broker made for a change; no other answer ever shows it. */
  readonly secret?: string | undefined;
  /** Why the order was refused; undefined if it was not. */
  readonly error?: unknown;
}

/** The dead letters of a subscription after an order. */
export interface DeadLettersResult {
  readonly left: number;
  /** The newest attempt that failed, or why the order ended before an attempt. */
  readonly failure?: { readonly eventId: EventId; readonly reason: string } | undefined;
}

/** How the receiver answered a test event. */
export interface TestResult {
  readonly outcome: "accepted" | "failed" | "gone";
  /** HTTP status; undefined without an answer. */
  readonly status: number | undefined;
  readonly reason: string | undefined;
  readonly excerpt: string | undefined;
  readonly durationMs: number;
}

export interface TopicsCall {
  readonly groupId: string | undefined;
  readonly prefix?: string | undefined;
  /** A pattern that the topic matches. */
  readonly filter?: string | undefined;
}

/** Number of events of a topic in the last minutes. */
export interface TopicRate {
  readonly events: number;
  /** Length of the measured time up to now, in milliseconds. */
  readonly ms: number;
}

/** Size of a topic on the chain. */
export interface TopicBytes {
  /** Bytes of the encoded events. */
  readonly bytes: number;
  readonly batches: number;
  /** Whether the topic has more batches; only the newest were measured. */
  readonly isCut: boolean;
}

export interface TopicDetails {
  readonly topic: Topic;
  /** Events in the index. */
  readonly events: number;
  readonly size: TopicBytes;
  /** Undefined if the chain does not answer; then `lastEventAt` and `writers` may be undefined too. */
  readonly rate: TopicRate | undefined;
  /** When the block of the newest event was made. */
  readonly lastEventAt: number | undefined;
  readonly writers: TopicWriters | undefined;
  /** Number of callback subscriptions that match the topic. */
  readonly subscriptions: number;
}

/** A place in the events of a topic: a sequence, or a time in milliseconds since the epoch, which means the first block made then or later. */
export type EventBound = Exclude<PlaceOrder, string>;

export interface EventsCall {
  readonly topic: string;
  readonly groupId: string | undefined;
  /** Only events from this bound on; undefined for all. */
  readonly from?: EventBound | undefined;
  /** Only events before this bound; undefined to end with the newest event. */
  readonly before: EventBound | undefined;
  readonly limit: number;
}

/** A block that has events. */
export interface BlockView {
  readonly block: number;
  /** Batches of the block, in chain order. */
  readonly batches: readonly { readonly batch: EventBatch; readonly firstEventId: EventId }[];
  /** Whether the block has more batches. */
  readonly isCut: boolean;
}

export interface GroupView extends GroupHealth {
  /** What the ledger reports; undefined if the chain did not answer in time. */
  readonly ledgerInfo: LedgerInfo | undefined;
  /** Rollbacks since the index was created. */
  readonly rollBacks: number;
  /** The newest rollbacks that this node has seen since it started, newest first. */
  readonly rollBackHistory: readonly SeenRollBack[];
}

export interface NodeView {
  readonly id: NodeId | undefined;
  /** The node's address; undefined for a single node. */
  readonly address: string | undefined;
  readonly joinedAt: number | undefined;
  /** Whether this node answers the call. */
  readonly isOwn: boolean;
  readonly roles: NodeRoles;
}

export interface NodeRoles {
  /** Groups whose index the node writes. */
  readonly follows: readonly GroupId[];
  /** Callback subscriptions that the node owns, in any state. */
  readonly subscriptions: number;
  /** Sessions with a connection to the node. Sessions that are not stored count only for the node that answers. */
  readonly sessions: number;
}

export interface NodePage extends Page<NodeView> {
  /** The newest membership changes that this node has seen since it started, newest first. */
  readonly history: readonly SeenMemberChange[];
}

/** Which sessions a call concerns, in the client's words. An undefined field matches all. */
export interface SessionsCall {
  readonly groupId?: string | undefined;
  readonly kind?: SessionProtocol | undefined;
  readonly isConnected?: boolean | undefined;
  readonly owner?: string | undefined;
  /** Address of the node that the session is connected to. */
  readonly node?: string | undefined;
  /** Least number of matching events that wait. */
  readonly lagMin?: number | undefined;
}

/** A session of MQTT, STOMP or a tail. */
export interface SessionView extends Omit<ConnectedSession, "isStored" | "notifiedAt"> {
  readonly isConnected: boolean;
  /** Address of the node that the session is connected to. */
  readonly node: string | undefined;
  /** Matching events that are not acknowledged. An event that two filters match counts twice. */
  readonly lag: number;
  /** Position of the oldest of these events; undefined if there is none. */
  readonly waitingFrom: Position | undefined;
  /** Time of the block of the oldest event; undefined if there is none, or if the chain does not answer in time. */
  readonly waitingSince: number | undefined;
}
