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
import type { LedgerStanding } from "../../ports/ledger-standing.ts";
import type { TopicWriters } from "../../ports/topic-writers.ts";
import type { SeenMemberChange } from "../member-history.ts";
import type { SeenRollBack } from "../rollback-history.ts";
import type { SessionStanding } from "../session-standing.ts";
import type { Concerned } from "./concerned.ts";

/** A page of a list: what comes after `after`, which the page before gave as `next`. */
export interface PageCall {
  readonly after: string | undefined;
  readonly limit: number;
}

/** A page may be shorter than asked for, or empty: the list has ended where `next` is undefined. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next: string | undefined;
}

/** Which callback subscriptions a call concerns, as the client wrote it; what is undefined does not matter. */
export interface SearchCall {
  readonly groupId?: string | undefined;
  readonly state?: SubscriptionState | undefined;
  readonly kind?: WebhookFormat | undefined;
  /** The topic or pattern of the subscription, as it was subscribed to. */
  readonly topic?: string | undefined;
  readonly prefix?: string | undefined;
  /** A topic whose events it gets. */
  readonly matches?: string | undefined;
  /** Host of the url; without a port, at any port. */
  readonly host?: string | undefined;
  readonly owner?: string | undefined;
  /** Address of the node that delivers it. */
  readonly node?: string | undefined;
  /** At least so many matching events wait. */
  readonly lagMin?: number | undefined;
  /** The receiver has failed for at least so long. */
  readonly failingMsMin?: number | undefined;
}

/** A callback subscription with the progress that this node knows. */
export interface SubscriptionView {
  readonly subscription: Subscription;
  /** Matching events after the cursor. */
  readonly lag: number;
  /** Position of the oldest of them; undefined without one. */
  readonly waitingFrom: Position | undefined;
  /** Address of the node that delivers it; undefined for none, and where one process has the store alone. */
  readonly node: string | undefined;
}

/** A callback subscription of a list. */
export interface ListedSubscription extends SubscriptionView {
  /** When the block of the oldest event after the cursor was made; undefined without one, or if the chain does not tell in time. */
  readonly waitingSince: number | undefined;
  /** When the next attempt is due; undefined unless this node waits for it, or the receiver asked for the wait. */
  readonly nextAttemptAt: number | undefined;
  /** The newest attempt of this node. */
  readonly lastAttempt: AttemptRecord | undefined;
}

export interface SubscriptionDetails extends ListedSubscription {
  /** Number of its dead letters. */
  readonly deadLetters: number;
  /** Attempts of this node since it began to deliver the subscription, the newest first; none if another node does. */
  readonly attempts: readonly AttemptRecord[];
}

/** A place in the events of a subscription: `OFFSET_FIRST`, `OFFSET_LAST` or an eventId as the client wrote it, a sequence, or a time in milliseconds since the epoch. */
export type PlaceOrder = string | { readonly sequence: number } | { readonly time: number };

/** What an operator wants of a subscription. */
export type SubscriptionOrder =
  /** Holds it until an operator resumes it. */
  | { readonly kind: "pause" }
  /** Delivers again from its cursor, whether it was paused or suspended. */
  | { readonly kind: "resume" }
  /** Makes the next attempt at once; also resumes a suspended one. */
  | { readonly kind: "retry" }
  /** Moves the cursor past an event; past the next one, if left out. */
  | { readonly kind: "skip"; readonly to: PlaceOrder | undefined }
  /** Moves the cursor back, so that the event and all later ones are delivered again. */
  | { readonly kind: "replay"; readonly from: PlaceOrder }
  /** Changes what is delivered, and where and how. */
  | { readonly kind: "change"; readonly change: DeliveryChange }
  /** Sends a test event now, in whatever state it is. */
  | { readonly kind: "test" }
  | LettersOrder;

/** Delivers dead letters again, or removes them: that of one event, or all if left out. */
export interface LettersOrder {
  readonly kind: "redeliver" | "discard";
  readonly eventId: string | undefined;
}

/** What to change of a subscription; what is undefined stays. */
export interface DeliveryChange extends DeliveryOptionsCall {
  /** A topic or pattern. */
  readonly topic?: string | undefined;
  /** A secret belongs to its url: a new url takes the one of this change, or none. */
  readonly url?: string | undefined;
  /** Null for none any more, `generate` for one that the broker makes. */
  readonly secret?: string | null | undefined;
  /** How long the secret before it signs as well, at the same url. */
  readonly rotationMs?: number | undefined;
  readonly kind?: WebhookFormat | undefined;
}

export interface OrderCall {
  readonly order: SubscriptionOrder;
  /** Changes nothing, and says what it would concern. */
  readonly isDryRun: boolean;
}

/** What an order concerned, or would concern. */
export interface OrderResult extends Concerned {
  readonly id: Subscription["id"];
  /** Undefined of any other order. */
  readonly letters?: LettersResult | undefined;
  /** How a test event was taken; undefined of any other order. */
  readonly test?: TestResult | undefined;
  /** The secret that a change made; nothing else ever shows it. */
  readonly secret?: string | undefined;
  /** Why the order was refused; undefined if it was not. */
  readonly error?: unknown;
}

/** What an order leaves of the dead letters of a subscription. */
export interface LettersResult {
  readonly left: number;
  /** The newest attempt that failed. */
  readonly failure?: { readonly eventId: EventId; readonly reason: string } | undefined;
}

/** How a test event was taken, and how long that took. */
export interface TestResult {
  readonly outcome: "accepted" | "failed" | "gone";
  /** Of HTTP; undefined without an answer. */
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

/** Events of the last minutes. */
export interface TopicRate {
  readonly events: number;
  /** The time in which their blocks were made, up to now. */
  readonly ms: number;
}

/** What a topic takes on the chain. */
export interface TopicBytes {
  /** Of the encoded events. */
  readonly bytes: number;
  readonly batches: number;
  /** Whether it has more batches than were measured, which are the newest. */
  readonly isCut: boolean;
}

export interface TopicDetails {
  readonly topic: Topic;
  /** Events in the index. */
  readonly events: number;
  readonly size: TopicBytes;
  /** Undefined if the chain does not tell, as the next ones. */
  readonly rate: TopicRate | undefined;
  /** When the block of the newest event was made. */
  readonly lastEventAt: number | undefined;
  readonly writers: TopicWriters | undefined;
  /** Callback subscriptions that match it, at most as many as are counted. */
  readonly subscriptions: number;
}

/** A place in the events of a topic: a sequence, or a time in milliseconds since the epoch, which stands for the first block made then or later. */
export type EventBound = Exclude<PlaceOrder, string>;

export interface EventsCall {
  readonly topic: string;
  readonly groupId: string | undefined;
  /** Only events from here on; undefined for all. */
  readonly from?: EventBound | undefined;
  /** Only events before this; undefined for the newest. */
  readonly before: EventBound | undefined;
  readonly limit: number;
}

/** A block that has events. */
export interface BlockView {
  readonly block: number;
  /** In the order of the chain. */
  readonly batches: readonly { readonly batch: EventBatch; readonly firstEventId: EventId }[];
  /** Whether the block has more batches. */
  readonly isCut: boolean;
}

export interface GroupView extends GroupHealth {
  /** Undefined if the chain did not answer in time. */
  readonly standing: LedgerStanding | undefined;
  /** Rollbacks of the index since it began. */
  readonly rollBacks: number;
  /** The newest that this node has seen since it started, newest first. */
  readonly rollBackHistory: readonly SeenRollBack[];
}

export interface NodeView {
  readonly id: NodeId | undefined;
  /** Undefined for the one process that has the store alone. */
  readonly address: string | undefined;
  readonly joinedAt: number | undefined;
  /** Whether it answers this call. */
  readonly isOwn: boolean;
  readonly roles: NodeRoles;
}

export interface NodeRoles {
  /** Groups whose index it writes. */
  readonly follows: readonly GroupId[];
  /** Callback subscriptions that it owns, in any state. */
  readonly subscriptions: number;
  /** Sessions with a connection to it: the stored ones, and those of the node that answers that are not stored. */
  readonly sessions: number;
}

export interface NodePage extends Page<NodeView> {
  /** The newest changes that this node has seen since it started, newest first. */
  readonly history: readonly SeenMemberChange[];
}

/** Which sessions a call concerns, as the client wrote it; what is undefined does not matter. */
export interface SessionsCall {
  readonly groupId?: string | undefined;
  readonly kind?: SessionProtocol | undefined;
  readonly isConnected?: boolean | undefined;
  readonly owner?: string | undefined;
  /** Address of the node of its connection. */
  readonly node?: string | undefined;
  /** At least so many matching events wait. */
  readonly lagMin?: number | undefined;
}

/** A session of MQTT, STOMP or a tail. */
export interface SessionView extends Omit<SessionStanding, "isStored"> {
  readonly isConnected: boolean;
  /** Address of the node of its connection. */
  readonly node: string | undefined;
  /** Matching events that are not acknowledged; one that two filters match counts twice. */
  readonly lag: number;
  /** Position of the oldest of them; undefined without one. */
  readonly waitingFrom: Position | undefined;
  /** When the block of that event was made; undefined as for a subscription. */
  readonly waitingSince: number | undefined;
}
