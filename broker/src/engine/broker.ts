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

/** A topic or filter that a right is asked for. */
export type NamedFilter = TopicCall;

export interface PublishCall extends TopicCall {
  readonly content: Uint8Array;
  readonly extensions: Extensions;
  /** Whether the content may be empty, as MQTT and STOMP have it; false when left out. */
  readonly mayBeEmpty?: boolean;
  /** Names the publish: repeats with the same key give one event, and are answered with it. Undefined for none. */
  readonly key?: string | undefined;
  /**
   * The session whose key it is; the caller's own key if left out. A session uses a key again for another publish after {@link Broker.release}. If its
   * client forgot that it used one, the publish that differs takes the key. If another node has taken the session, nothing is published: TIMEOUT.
   */
  readonly session?: KeySession | undefined;
  /** Undefined for a publish that opens no topic, and whose place in the order of the group nobody waits for. */
  readonly placement?: Placement | undefined;
}

/** How a connection keeps the order of its publishes. It submits nothing more before the publish has its place, or has settled. */
export interface Placement {
  /** The publish opens its topic, which does not exist; throws to refuse. Undefined if publishes open no topics: then 100101. */
  readonly onOpening: (() => void) | undefined;
  /** Whatever is submitted from now on comes after it. Called within `submit` if the topic is known. */
  readonly onPlaced: () => void;
}

/** `TIMEOUT`: the transaction was sent, and whether it was included is not known yet; the event may still come. */
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

/** How the publishes of a transaction ended, all alike; the results are in their order. `TIMEOUT`: as for one publish, of all. */
export type TransactionOutcome =
  | { readonly status: "SUCCESS"; readonly results: readonly PublishResult[] }
  | { readonly status: "TIMEOUT" }
  | { readonly status: "REFUSED"; readonly error: unknown };

/** Called once when a transaction has ended, in a later turn than the one of its submission. It must not throw. */
export type OnTransactionSettled = (outcome: TransactionOutcome) => void;

export interface ListCall {
  readonly pageIndex: number;
  /** Outside 1…99 the default of 10 is used. */
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
  /** Where clients reach the node, host:port; undefined for the one process that has the store alone. */
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

/** An event, its place in its batch (from 0), and what ties it to the chain. */
export interface ProofResult {
  readonly event: EventResult;
  readonly index: number;
  readonly chain: ChainProof;
}

export interface SkippedEntriesCall {
  readonly groupId: string | undefined;
  /** How many at most, as it was written; 100 when undefined. */
  readonly limit: string | undefined;
}

/** Entries that the index of a group skipped, newest first. */
export interface SkippedEntriesResult {
  readonly groupId: string;
  readonly entries: readonly SkippedEntry[];
}

/** Whether a group can serve: its chain answers and its index follows. */
export interface GroupHealth {
  readonly groupId: string;
  readonly ready: boolean;
  /** Why it is not ready; undefined when it is. */
  readonly reason: string | undefined;
  /** A warning to the operator of a group that serves. */
  readonly warning?: string | undefined;
  /** `follows`: this node reads the chain and writes the index. `watches`: another node does, and this one reads the index. */
  readonly role?: "follows" | "watches";
  /** Active subscriptions that this node delivers. */
  readonly subscriptions?: number;
  /** Callback subscriptions of all nodes to which nothing is delivered, as of a few seconds ago. */
  readonly held?: { readonly suspended: number; readonly paused: number };
  /** Of the subscription that waits for the oldest event, among those that this node delivers; as of a few seconds ago. */
  readonly lag?: { readonly events: number; readonly seconds: number | undefined };
  readonly indexedBlock: number;
  /** The newest block of the chain that was heard of, final or not. */
  readonly headBlock?: number | undefined;
  /** The chain, the address of the registry, and the signer; those that are known. */
  readonly chain?: Readonly<Record<string, string | number>>;
}

/** This node among those that share its store. */
export interface NodeHealth {
  /** Where clients reach it, host:port. */
  readonly address: string;
  readonly isMember: boolean;
  /** Why it is no member; undefined when it is. */
  readonly reason: string | undefined;
}

/** What a connection may do with its session. */
export interface ConnectedSession extends TailSession {
  /** The same for as long as the session lives. */
  readonly id: string;
  /** Whether it outlasts its connection. */
  readonly isStored: boolean;
  /** Publishes of QoS 2 that the client has not released, by packet identifier, with their outcomes. */
  readonly inbound: LazyMap<number, Promise<PublishOutcome>>;
  /** Owns the keys of these publishes. */
  readonly keys: KeySession;
  readonly filterCount: number;
  hasFilter(filter: TopicFilter): boolean;
  /** What an event published to the topic has to name as its origin, so that this session does not get it; undefined where it may. */
  originFor(topic: string): string | undefined;
  /** Answers whether the ticket was in flight. */
  acknowledge(ticket: Ticket): boolean;
  /** The peer has an event of QoS 2. Answers whether the ticket was in flight; {@link Peer.release} follows once that is recorded. */
  receive(ticket: Ticket): boolean;
  /** Acknowledges what the peer was given up to this ticket. Answers whether the peer had it. */
  acknowledgeThrough(ticket: Ticket): boolean;
  /**
   * The peer could not use an event, or any that it was given up to this ticket. It gets each again with the same ticket, before anything newer, after
   * a wait that grows. Rejections are counted across connections; after `rejectionsMax` of one event the session is suspended: it calls
   * `Peer.suspended`, and its peer gets nothing more. A later {@link Broker.attach} resumes it. Answers whether the peer had the ticket.
   */
  reject(ticket: Ticket, reach: "one" | "through"): boolean;
  /** Changes how many events may be given and not acknowledged. */
  resize(windowMax: number): void;
}

/** What a session is subscribed to from its first event on. It keeps these filters; its key is its subscription identifier, a UUID. */
export interface StreamOrder {
  /** As the client wrote them. */
  readonly filters: readonly string[];
  /** Whether the peer acknowledges or rejects each event; else an event counts as taken once it was given. */
  readonly acknowledges: boolean;
  /** As in {@link SubscribeCall}. */
  readonly offset: string | undefined;
  /** Finds the start in place of `offset`. Called again where the index rolls back meanwhile. */
  readonly findStart?: (() => Promise<StartPosition>) | undefined;
}

/** Where a reader begins. */
export interface StartPosition {
  /** It is given what comes after this. */
  readonly position: Position;
  /** Generation of the index before the position was found; after a later rollback, the position may be of a removed event. */
  readonly generation: number;
}

/** What a tail is to get, as its client wrote it. */
export interface TailOrder {
  /** Blank or undefined means the default group. */
  readonly groupId: string | undefined;
  readonly filters: readonly string[];
  /** `OFFSET_FIRST`, `OFFSET_LAST`, an eventId, a {@link TailStart.id} or a time; undefined counts as `OFFSET_LAST`. */
  readonly after: string | undefined;
  /** The last id that its client had; it goes before `after`. Never refused for an event that the chain took back. */
  readonly lastEventId: string | undefined;
  /** Called before the first event is delivered. */
  readonly onConnected: (session: TailSession, start: TailStart, origins: OriginSource) => void;
}

/** Where a tail begins. */
export interface TailStart {
  readonly position: Position;
  /** Names the place: with it as {@link TailOrder.lastEventId} another tail begins there. */
  readonly id: string;
  /** The chain took back the event that the client had last, so some events may come again. */
  readonly isTakenBack: boolean;
}

/** What the chain says of an event beside its content: its topic among all chains (CAIP-10), and the time of its block. */
export type EventOrigin = NotifiedOrigin;

/** Finds what the chain says of events beside their content. */
export interface OriginSource {
  /** Undefined for one that has to be loaded. */
  find(event: Event): EventOrigin | undefined;
  /** Without a time where the chain does not say. @throws what the store throws. */
  load(event: Event, signal: AbortSignal): Promise<EventOrigin>;
}

export interface AttachOrder {
  /** Blank or undefined means the default group. */
  readonly groupId: string | undefined;
  readonly protocol: SessionProtocol;
  /** What the client calls itself; one session for each name in a group. */
  readonly key: string;
  /** Begins anew: what an earlier session of that name kept is dropped. */
  readonly isClean: boolean;
  /** Events that may be given and not acknowledged. */
  readonly windowMax: number;
  /** Called before the first event is delivered. */
  readonly onConnected: (attachment: Pick<Attachment, "session" | "isPresent">) => void;
  /** Called when the connection was lost and the session ended or this delay passed, unless a later connection has the session by then. */
  readonly will: WillOrder | undefined;
  /** How long the session outlives its connection as far as is known now; 0 for not at all. */
  readonly expiryMs: number;
  /** Left out, the session gains and loses filters by {@link Attachment}. */
  readonly stream?: StreamOrder | undefined;
}

export interface WillOrder {
  readonly delayMs: number;
  /** What it publishes, which must be as a publish must be. */
  readonly call: PublishCall;
  /** Whether it opens its topic. */
  readonly opensTopic: boolean;
  /** How long after its publication the event expires; undefined for never. */
  readonly expiresAfterMs: number | undefined;
}

/** A connection's hold on its session. */
export interface Attachment {
  readonly session: ConnectedSession;
  /**
   * Adds filters, each from the newest indexed event on, or replaces those of the same text. Answers for each whether it is new, or why it was
   * refused (100702). What is answered is on disk where the session is. @throws BrokerError when the store cannot take them.
   */
  subscribe(orders: readonly SessionFilter[]): Promise<readonly (boolean | BrokerError)[]>;
  /** Returns for each whether the filter existed. @throws BrokerError if the store cannot write. */
  unsubscribe(filters: readonly TopicFilter[]): Promise<readonly boolean[]>;
  /** Whether the session was there before. */
  readonly isPresent: boolean;
  /** Ends the hold. The session lives on for `expiryMs`, 0 for not at all; the will is published unless `isRegular`. Without effect once another connection has the session. */
  detach(leave: { readonly expiryMs: number; readonly isRegular: boolean }): void;
  /**
   * Acknowledgements follow until the promise settles, also after {@link detach}, and count: the session is written for the last time, and another
   * connection of this node gets it, only then. A connection of another node does not wait. The promise must not reject.
   */
  linger(until: Promise<void>): void;
  /** Ends the hold and the session. Answers once that is on disk. @throws what the store throws; the session ends all the same, later. */
  end(): Promise<void>;
}

/**
 * Every operation of the broker, for gateways of any protocol. Each asks first whether the caller is known (100701) and has the right (100702). Inputs are what
 * clients wrote. A wrong input throws a BrokerError of the catalogue, and then nothing has changed.
 */
export interface Broker {
  /** Answers whether that changed something, as {@link close} does. */
  open(caller: Caller, call: TopicCall): Promise<boolean>;
  close(caller: Caller, call: TopicCall): Promise<boolean>;
  exist(caller: Caller, call: TopicCall): Promise<boolean>;
  state(caller: Caller, call: TopicCall): Promise<Topic>;
  list(caller: Caller, call: ListCall): Promise<ListResult>;
  /**
   * Publishes. Settles with SUCCESS once the event is durable on the chain and getEvent finds it, with TIMEOUT when its fate is not known
   * in time, with REFUSED (100101, 100112, 100114, 100201, 200202, 200205, 200300, 200301) when it was not published. Throws what is wrong with the call itself.
   * Events of one topic are committed in the order in which they were submitted. If its `placement` allows it, a topic that does not exist is
   * opened by the same transaction; then it is also REFUSED with 100113 or 100702.
   */
  submit(caller: Caller, call: PublishCall, onSettled: OnSettled): void;
  /**
   * Publishes all in one transaction of the chain, or none; it carries nothing else. The calls are of one group and without keys (200001). Refused as a
   * whole where one would be (see {@link submit}), and where they do not fit into one transaction (100201). Events that were submitted before keep their
   * place before these; a connection that keeps its order submits nothing more until this has settled. If another node closes one of several topics
   * meanwhile, none is published (200202); only a registry of an earlier version may commit a part then, which is REFUSED and logged.
   */
  submitAll(caller: Caller, calls: readonly PublishCall[], onSettled: OnTransactionSettled): void;
  /**
   * Passes an event to the sessions that are connected to this node and take such events (`Peer.pass`): it is committed nowhere, and nobody else gets it. The
   * topic need not exist. Throws what is wrong with the call; 200300 where it would take too long to find who has a filter for the topic.
   */
  pass(caller: Caller, call: PublishCall): void;
  /**
   * Whether the group takes these publishes together now. If not, calls back once, in a later turn, when it does: a gateway that can make its client wait
   * asks before it submits. The calls are of one group. @throws BrokerError 200211, 200205.
   */
  whenRoom(caller: Caller, calls: readonly PublishCall[], callback: () => void): boolean;
  /**
   * Frees a key of a session: the next publish with it is another one. Answers, once that is on disk, whether the key was taken.
   * @throws BrokerError 200205, 200211, 200300 if another node has taken the session, and when the store cannot take it.
   */
  release(caller: Caller, call: ReleaseCall): Promise<boolean>;
  /**
   * Who gave a credential, as its text came, or showed a certificate without giving one. It never throws: whoever gave a wrong one is refused (100701)
   * by each call. A gateway makes its callers with the answer. The answer to a wrong one may come late.
   */
  authenticate(credential: string | undefined, origin: LogInOrigin): Principal | Promise<Principal>;
  /** Notes a log-in that failed before it gave a credential, and slows it as {@link authenticate} slows a wrong one. */
  refuseLogIn(reason: string, origin: LogInOrigin): Principal | Promise<Principal>;
  /** Whether a listener takes a new connection. Else it closes it unread: from its address, wrong credentials flood. */
  mayConnect(findAddress: () => string | undefined): boolean;
  /** Whether the caller may be connected; asked by a protocol whose connections have no session. @throws BrokerError 100701, 200207. */
  admit(caller: Caller): void;
  /**
   * Gives a connection its session, and ends it once the principal has no rights any more.
   * @throws BrokerError 100701, 200205, 200207, 200211, 200300, and for a will what submit throws; for a stream what subscribe throws of its filters,
   * its identifier (100505, 100108) and its offset.
   */
  attach(caller: Caller, order: AttachOrder, peer: Peer): Promise<Attachment>;
  /**
   * Gives a connection the events that match, from a place on, each once and in order, until it ends. It acknowledges none: its client says where the
   * next one begins. @throws BrokerError as {@link attach}, and 100300 to 100304 of the start.
   */
  tail(caller: Caller, order: TailOrder, peer: Peer): Promise<Pick<Attachment, "end">>;
  subscribe(caller: Caller, call: SubscribeCall): Promise<SubscriptionId>;
  /** By JSON-RPC only with a coordinator (100601). */
  unSubscribe(caller: Caller, call: UnsubscribeCall): Promise<void>;
  /** Asks for the right again once the event is found, and with it its topic. */
  getEvent(caller: Caller, call: EventCall): Promise<EventResult>;
  /** Asks as getEvent does. */
  getProof(caller: Caller, call: EventCall): Promise<ProofResult>;
  /** Every live node, also those that deliver no subscription. */
  listSubscriptions(caller: Caller): Promise<readonly NodeListing[]>;
  /** Also of a group that is not up. */
  listSkippedEntries(caller: Caller, call: SkippedEntriesCall): Promise<SkippedEntriesResult>;
  /** Who the caller is, and what it may do, be it with some topics alone. @throws BrokerError 100701, 200207. */
  rightsOf(caller: Caller): CallerRights;
  /** Of every group, or of one. @throws BrokerError 100701, 100702, 200207, 200211 of one. */
  health(caller: Caller, groupId?: string): readonly GroupHealth[];
  /** Undefined where this process has the store alone. */
  node(caller: Caller): NodeHealth | undefined;
  /**
   * Checks only a right, for answers that a gateway gives without the broker or builds once for many callers; one to a filter where `named` is given.
   * @throws BrokerError 100701, 100702, 200207.
   */
  authorize(caller: Caller, action: Action, named?: NamedFilter): void;
}
