import type { BrokerError, EventId } from "@stele/wire";
import type { Ticket } from "../domain/delivery-window.ts";
import type { Event, Extensions } from "../domain/event.ts";
import type { Position } from "../domain/position.ts";
import type { SessionFilter } from "../domain/session-filter.ts";
import type { TopicFilter } from "../domain/topic-filter.ts";
import type { SessionProtocol, Subscription, SubscriptionId } from "../domain/subscription.ts";
import type { Topic } from "../domain/topic.ts";
import type { LazyMap } from "../lib/lazy-collections.ts";
import type { ChainProof } from "../ports/chain-proof.ts";
import type { NotifiedOrigin } from "../ports/sink.ts";
import type { SkippedEntry, TopicPage } from "../ports/store.ts";
import type { Caller, Principal } from "./access/caller.ts";
import type { CallerRights } from "./access/caller-rights.ts";
import type { LogInOrigin } from "./access/failed-log-ins.ts";
import type { Action } from "./access/policy.ts";
import type { KeySession, ReleaseCall } from "./key-session.ts";
import type { Peer, TailSession } from "./session/peer.ts";
import type { SubscribeCall } from "./subscribe-call.ts";

/** A call about one topic, as a client wrote it: nothing is checked yet. Blank or undefined groupId means the default group. */
export interface TopicCall {
  readonly topic: string;
  readonly groupId: string | undefined;
}

/** The filter on which a right is checked. It must not be a shared filter. */
export type NamedFilter = TopicCall;

export interface PublishCall extends TopicCall {
  readonly content: Uint8Array;
  readonly extensions: Extensions;
  /** Whether the content may be empty, as MQTT and STOMP allow; false if left out. */
  readonly mayBeEmpty?: boolean;
  /** Idempotency key: publishes with the same key make one event, and all are answered with its eventId. Undefined for none. */
  readonly key?: string | undefined;
  /**
   * The session that owns `key`; if left out, the caller owns it. After {@link Broker.release}, the session may use the key for another publish. If its
   * client does so without a release, the later publish replaces the earlier one under that key. If another node has taken over the session, nothing is
   * published, and the answer is TIMEOUT.
   */
  readonly session?: KeySession | undefined;
  /** Whether an earlier request may have published under `key`. Then a quota refuses this request only if the earlier one published nothing. */
  readonly isRepeat?: boolean;
  /** Undefined if the publish may not open a topic, and nobody waits until its place in the group's order is fixed. */
  readonly placement?: Placement | undefined;
}

/** Keeps the publishes of a connection in order: the connection submits its next publish only after `onPlaced`, or once this one has settled. */
export interface Placement {
  /** Called before the publish opens a topic that does not exist; throws to refuse. If undefined, a publish to such a topic is refused with 100101. */
  readonly onOpening: (() => void) | undefined;
  /** Called when the place of this publish is fixed: later submissions come after it. If the topic is known, `submit` itself calls it. */
  readonly onPlaced: () => void;
}

/** `TIMEOUT`: the transaction was sent, but it is not known yet whether the chain included it; the event may still come. */
export interface PublishResult {
  readonly topic: string;
  /** Empty unless status is SUCCESS. */
  readonly eventId: EventId | "";
  readonly status: "SUCCESS" | "TIMEOUT";
}

/** How a publish ended: its result, or why nothing was published. */
export type PublishOutcome = PublishResult | { readonly status: "REFUSED"; readonly error: unknown };

/** Called once when a publish has ended, in a later turn than the one of its submission. It must not throw. */
export type OnSettled = (outcome: PublishOutcome) => void;

/** How the publishes of one transaction ended, all in the same way. `results` are in the order of the calls; `TIMEOUT` as in {@link PublishResult}. */
export type TransactionOutcome =
  | { readonly status: "SUCCESS"; readonly results: readonly PublishResult[] }
  | { readonly status: "TIMEOUT" }
  | { readonly status: "REFUSED"; readonly error: unknown };

/** Called once when a transaction has ended, in a later turn than the one of its submission. It must not throw. */
export type OnTransactionSettled = (outcome: TransactionOutcome) => void;

export interface ListCall {
  readonly pageIndex: number;
  /** A value outside 1…99 counts as 10. */
  readonly pageSize: number;
  readonly groupId: string | undefined;
}

export interface ListResult extends TopicPage {
  readonly pageIndex: number;
  /** The page size used. */
  readonly pageSize: number;
}

export interface UnsubscribeCall {
  readonly subscriptionId: string;
}

/** One subscription as the admin listing shows it. */
export interface SubscriptionStatus extends Subscription {
  /** Matching events past the cursor. */
  readonly notifyingCount: number;
}

/** The subscriptions that one node delivers. */
export interface NodeListing {
  /** Where clients reach the node, host:port; undefined if the broker is a single node. */
  readonly address: string | undefined;
  readonly subscriptions: readonly SubscriptionStatus[];
}

export interface EventCall {
  readonly eventId: string;
  readonly groupId: string | undefined;
}

export interface EventResult extends Event {
  readonly eventId: EventId;
}

/** An event, its index in its batch (from 0), and the proof that the chain contains it. */
export interface ProofResult {
  readonly event: EventResult;
  readonly index: number;
  readonly chain: ChainProof;
}

export interface SkippedEntriesCall {
  readonly groupId: string | undefined;
  /** Maximum number of entries, as the client wrote it; 100 if undefined. */
  readonly limit: string | undefined;
}

/** Entries that the index of a group skipped, newest first. */
export interface SkippedEntriesResult {
  readonly groupId: string;
  readonly entries: readonly SkippedEntry[];
}

/** Whether a group can serve: its chain answers, and its index follows the chain. */
export interface GroupHealth {
  readonly groupId: string;
  readonly ready: boolean;
  /** Why it is not ready; undefined when it is. */
  readonly reason: string | undefined;
  /** A warning to the operator; it does not make the group unready. */
  readonly warning?: string | undefined;
  readonly transactionFailure?: string | undefined; // Part of the warning.
  /** `follows`: this node reads the chain and writes the index. `watches`: another node does, and this one reads the index. */
  readonly role?: "follows" | "watches";
  /** Active callback subscriptions that this node delivers. */
  readonly subscriptions?: number;
  /** How many callback subscriptions get no events, on all nodes together, and how many this node has found locked; as of a few seconds ago. */
  readonly held?: { readonly suspended: number; readonly paused: number; readonly locked: number };
  /** The most events that wait for one subscription of this node, and the age of the oldest waiting event; as of a few seconds ago. */
  readonly lag?: { readonly events: number; readonly seconds: number | undefined };
  readonly indexedBlock: number;
  /** The newest block of the chain that this node has seen, final or not. */
  readonly headBlock?: number | undefined;
  /** The chain, the address of the registry, and the signer, as far as they are known. */
  readonly chain?: Readonly<Record<string, string | number>>;
}

/** The membership of this node among the nodes that share its store. */
export interface NodeHealth {
  /** Where clients reach this node, host:port. */
  readonly address: string;
  readonly isMember: boolean;
  /** Why the node is not a member; undefined when it is. */
  readonly reason: string | undefined;
}

/** What a connection may do with its session. */
export interface ConnectedSession extends TailSession {
  /** Does not change while the session lives. */
  readonly id: string;
  /** Whether the session outlives its connection. */
  readonly isStored: boolean;
  /** Publishes of QoS 2 that the client has not released, by packet identifier, with their outcomes. */
  readonly inbound: LazyMap<number, Promise<PublishOutcome>>;
  /** Owns the keys of the publishes in `inbound`. */
  readonly keys: KeySession;
  readonly filterCount: number;
  hasFilter(filter: TopicFilter): boolean;
  /** The origin to name in a publish to the topic, so that this session does not get the event back; undefined if it may get the event. */
  originFor(topic: string): string | undefined;
  /** Acknowledges the event of a ticket, if that event is in flight. */
  acknowledge(ticket: Ticket): void;
  /**
   * Call it when the peer has received an event of QoS 2. Answers whether the event was in flight; {@link Peer.release} follows once the receipt is
   * recorded.
   */
  receive(ticket: Ticket): boolean;
  /**
   * Rejects the event of a ticket, if the peer has it. The peer gets the event again with the same ticket, before any newer event, after a wait that grows.
   * Rejections are counted across connections; after `rejectionsMax` of one event the session is suspended: it calls `Peer.suspended`, and its peer gets
   * nothing more until another {@link Broker.attach}.
   */
  reject(ticket: Ticket): void;
}

/** The filters of a session that cannot change them. The session's key is its subscription identifier, a UUID. */
export interface StreamRequest {
  /** As the client wrote them. */
  readonly filters: readonly string[];
  /** Whether the peer acknowledges or rejects each event; else an event counts as acknowledged once the peer was given it. */
  readonly acknowledges: boolean;
  /** As in {@link SubscribeCall}. */
  readonly offset: string | undefined;
  /** Finds the start position; replaces `offset`. Called again if the index rolls back meanwhile. */
  readonly findStart?: (() => Promise<StartPosition>) | undefined;
}

/** Where a reader begins. */
export interface StartPosition {
  /** The reader gets the events after this position. */
  readonly position: Position;
  /** Generation of the index before the position was found; after a later rollback, the position may be of a removed event. */
  readonly generation: number;
}

/** The events that a client wants from a tail, as it wrote them. */
export interface TailCall {
  /** Blank or undefined means the default group. */
  readonly groupId: string | undefined;
  readonly filters: readonly string[];
  /** `OFFSET_FIRST`, `OFFSET_LAST`, an eventId, a {@link TailStart.id} or a time; undefined counts as `OFFSET_LAST`. */
  readonly after: string | undefined;
  /** The id of the last event that the client got; overrides `after`. Accepted even if a reorg has removed that event. */
  readonly lastEventId: string | undefined;
  /** Called before the first event is delivered. */
  readonly onConnected: (session: TailSession, start: TailStart, origins: OriginSource) => void;
}

/** Where a tail begins. */
export interface TailStart {
  readonly position: Position;
  /** Identifies the position: a tail with this {@link TailCall.lastEventId} begins there. */
  readonly id: string;
  /** Whether a reorg removed the last event that the client got, so that some events may come again. */
  readonly isRolledBack: boolean;
}

/** The origin of an event: the CAIP-10 identifier of its topic contract, and the time of its block. */
export type EventOrigin = NotifiedOrigin;

/** Finds the origins of events. */
export interface OriginSource {
  /** Undefined if the origin must be loaded first. */
  find(event: Event): EventOrigin | undefined;
  /** The origin has no time if the chain does not give it. @throws what the store throws. */
  load(event: Event, signal: AbortSignal): Promise<EventOrigin>;
}

export interface AttachRequest {
  /** Blank or undefined means the default group. */
  readonly groupId: string | undefined;
  readonly protocol: SessionProtocol;
  /** The client's name for the session; a group has one session for each name. */
  readonly key: string;
  /** Whether to drop the state of an earlier session with this key. */
  readonly isClean: boolean;
  /** How many events may be in flight: given to the peer and not acknowledged. */
  readonly windowMax: number;
  /** Called before the first event is delivered. */
  readonly onConnected: (attachment: Pick<Attachment, "session" | "isPresent">) => void;
  /** Published if the connection is lost, once the session ends or `delayMs` passes, unless another connection has the session by then. */
  readonly will: WillRequest | undefined;
  /** How long the session outlives its connection; 0 for not at all. {@link Attachment.detach} may give another time. */
  readonly expiryMs: number;
  /** If left out, the client adds and removes filters by {@link Attachment}. */
  readonly stream?: StreamRequest | undefined;
}

export interface WillRequest {
  readonly delayMs: number;
  /** The publish; it is checked like any other. */
  readonly call: PublishCall;
  /** Whether the will may open its topic. */
  readonly opensTopic: boolean;
  /** How long after its publication the event expires; undefined for never. */
  readonly expiresAfterMs: number | undefined;
}

/** A connection's hold on its session. While the hold lasts, no other connection has the session. */
export interface Attachment {
  readonly session: ConnectedSession;
  /**
   * Adds filters, or replaces those of the same text; a new filter begins after the newest indexed event. Answers for each whether it is new, or why it
   * was refused, for example with 100702. If the session is stored, the filters are on disk before the answer. @throws BrokerError if the store cannot write.
   */
  subscribe(sessionFilters: readonly SessionFilter[]): Promise<readonly (boolean | BrokerError)[]>;
  /** Answers for each filter whether it existed. @throws BrokerError if the store cannot write. */
  unsubscribe(filters: readonly TopicFilter[]): Promise<readonly boolean[]>;
  /** Whether the session existed before this connection. */
  readonly isPresent: boolean;
  /**
   * Ends the hold. The session lives on for `expiryMs`, 0 for not at all; the will is published unless `isRegular`. No effect once another connection has
   * the session. Calls `onWritten` once the end and all acknowledgements are in the store, or the broker has given them up.
   */
  detach(leave: { readonly expiryMs: number; readonly isRegular: boolean; readonly onWritten?: () => void }): void;
  /**
   * Counts acknowledgements until the promise settles, even after {@link detach}. Only then is the session written for the last time, and only then
   * another connection of this node gets it. A connection of another node does not wait. The promise must not reject.
   */
  linger(until: Promise<void>): void;
  /** Ends the hold and the session. Waits until the end of the session is on disk. @throws what the store throws; the session then ends later. */
  end(): Promise<void>;
}

/**
 * Every operation of the broker, for gateways of any protocol. Each call that needs a right first checks that the caller is known (100701) and has the right
 * (100702). Pass inputs as clients wrote them: an invalid one throws a BrokerError of the catalogue, and changes nothing.
 */
export interface Broker {
  /** Answers whether it opened the topic; false if the topic was open already. {@link close} answers whether it closed the topic. */
  open(caller: Caller, call: TopicCall): Promise<boolean>;
  close(caller: Caller, call: TopicCall): Promise<boolean>;
  exist(caller: Caller, call: TopicCall): Promise<boolean>;
  state(caller: Caller, call: TopicCall): Promise<Topic>;
  list(caller: Caller, call: ListCall): Promise<ListResult>;
  /**
   * Publishes. Settles with SUCCESS once the event is durable on the chain and getEvent finds it; with TIMEOUT when its fate is not known in time; with
   * REFUSED (100101, 100112, 100114, 100201, 200202, 200205, 200207, 200300, 200301) when this call did not publish it. An earlier call with its key may have.
   * Throws if the call itself is invalid. Events of one topic are committed in the order in which they were submitted. If its `placement` allows it, the same
   * transaction opens a topic that does not exist; such a publish may also be REFUSED with 100113 or 100702.
   */
  submit(caller: Caller, call: PublishCall, onSettled: OnSettled): void;
  /**
   * Publishes all calls in one transaction of their own, or none. They must be of one group and without keys (200001). All are refused if one of them
   * would be (see {@link submit}), or if they do not fit into one transaction (100201). Events that were submitted earlier are committed earlier; a
   * connection that keeps its order submits nothing more until this has settled. If somebody closes one of the topics meanwhile, none is published
   * (200202).
   */
  submitAll(caller: Caller, calls: readonly PublishCall[], onSettled: OnTransactionSettled): void;
  /**
   * Passes an event to the sessions that are connected to this node and accept it (`Peer.pass`), without committing it to the chain. The topic need not exist.
   * Returns a promise if the event must wait. Throws if the call is invalid; throws or rejects with 200300 if too many filters nearly match, or too many wait.
   */
  pass(caller: Caller, call: PublishCall): Promise<void> | undefined;
  /**
   * Whether the group's queue has room for all these publishes now. If not, calls back once, in a later turn, when it has. A gateway that can make its
   * client wait calls this before it submits. The calls must be of one group. @throws BrokerError 100306, 200205, 200211.
   */
  whenRoom(caller: Caller, calls: readonly PublishCall[], callback: () => void): boolean;
  /**
   * Frees a key of a session, so that the next publish with this key makes another event. Answers, once that is on disk, whether the key was in use.
   * @throws BrokerError 100306, 200205, 200211; also 200300 if another node has taken over the session, or if the store cannot write.
   */
  release(caller: Caller, call: ReleaseCall): Promise<boolean>;
  /**
   * Finds the principal of a credential, given as the client sent it, or of a client certificate if there is no credential. Never throws: each call
   * refuses (100701) a principal with a wrong credential. A gateway puts the principal into its callers. The answer to a wrong credential may be delayed.
   */
  authenticate(credential: string | undefined, origin: LogInOrigin): Principal | Promise<Principal>;
  /** Counts a log-in that failed before it gave a credential; delays the answer as {@link authenticate} does for a wrong credential. */
  refuseLogIn(reason: string, origin: LogInOrigin): Principal | Promise<Principal>;
  /** Whether a listener accepts a new connection. If not, the listener closes it unread: its address has sent too many wrong credentials. */
  mayConnect(findAddress: () => string | undefined): boolean;
  /**
   * Checks that the caller may connect, and counts the connection; for protocols whose connections have no session.
   * @throws BrokerError 100701, 200207, 200300, 200301.
   */
  admit(caller: Caller): void;
  /**
   * Gives a connection its session, and ends the connection when the principal loses its rights.
   * @throws BrokerError 100306, 100701, 200205, 200207, 200211, 200300, 200301, and for a will what {@link submit} throws; for a stream also what
   * {@link subscribe} throws about filters, identifier (100505, 100108) and offset.
   */
  attach(caller: Caller, request: AttachRequest, peer: Peer): Promise<Attachment>;
  /**
   * Gives a connection the matching events after a position, each once and in order, until the connection ends. Nothing is acknowledged: the client says
   * where its next tail begins. @throws BrokerError as {@link attach}, 100702, and 100300 to 100304 for a wrong start.
   */
  tail(caller: Caller, call: TailCall, peer: Peer): Promise<Pick<Attachment, "end">>;
  subscribe(caller: Caller, call: SubscribeCall): Promise<SubscriptionId>;
  /** Refused (100601) for JSON-RPC if there is no coordinator. */
  unSubscribe(caller: Caller, call: UnsubscribeCall): Promise<void>;
  /** Checks the right once more when the event is found: only then is its topic known. */
  getEvent(caller: Caller, call: EventCall): Promise<EventResult>;
  /** Checks rights as {@link getEvent} does. Also refuses (100702) a tenant, and a caller who may not read every topic that the proof reveals. */
  getProof(caller: Caller, call: EventCall): Promise<ProofResult>;
  /** Lists the subscriptions by live node, including nodes that deliver none. */
  listSubscriptions(caller: Caller): Promise<readonly NodeListing[]>;
  /** Works also for a group that is not up. */
  listSkippedEntries(caller: Caller, call: SkippedEntriesCall): Promise<SkippedEntriesResult>;
  /** Who the caller is, and which actions it may do on at least some topics. @throws BrokerError 100701, 200207, 200300. */
  rightsOf(caller: Caller): CallerRights;
  /** Health of every group, or of one. @throws BrokerError 100701, 100702, 200207, and 200211 if that group is unknown. */
  health(caller: Caller, groupId?: string): readonly GroupHealth[];
  /** Undefined if the broker is a single node. */
  node(caller: Caller): NodeHealth | undefined;
  /**
   * Only checks a right, on a filter if `named` is given: for answers that a gateway gives without the broker, or builds once for many callers.
   * @throws BrokerError 100701, 100702, 200207, 200300, and for a malformed or shared filter as {@link tail}.
   */
  authorize(caller: Caller, action: Action, named?: NamedFilter): void;
}
