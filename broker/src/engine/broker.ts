import type { EventId } from "@stele/wire";
import type { Event, Extensions } from "../domain/event.ts";
import type { InterfaceType, Subscription, SubscriptionId } from "../domain/subscription.ts";
import type { Topic } from "../domain/topic.ts";
import type { ChainProof } from "../ports/chain-proof.ts";
import type { SkippedEntry, TopicPage } from "../ports/store.ts";
import type { Peer } from "./session/peer.ts";
import type { Attachment, AttachOrder } from "./session/sessions.ts";

/** A call about one topic, as a client wrote it: nothing is checked yet. Blank or undefined groupId means the default group. */
export interface TopicCall {
  readonly topic: string;
  readonly groupId: string | undefined;
}

export interface PublishCall extends TopicCall {
  readonly content: Uint8Array;
  readonly extensions: Extensions;
  /** Whether the content may be empty, as MQTT and STOMP have it; false when left out. */
  readonly mayBeEmpty?: boolean;
}

/** `TIMEOUT`: the transaction was sent, and whether it was included is not known yet; the event may still come. */
export interface PublishResult {
  readonly topic: string;
  /** Empty unless status is SUCCESS. */
  readonly eventId: EventId | "";
  readonly status: "SUCCESS" | "TIMEOUT";
}

/** What became of a publish: its result, or why nothing was published. */
export type PublishOutcome = PublishResult | { readonly status: "REFUSED"; readonly error: unknown };

/** Told once what became of a publish, in a later turn than the one of its submission. It must not throw. */
export type OnSettled = (outcome: PublishOutcome) => void;

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

export interface SubscribeCall extends TopicCall {
  readonly url: string;
  readonly interfaceType: Extract<InterfaceType, "RESTful" | "JsonRPC">;
  /** Identifier of an earlier subscription, to continue it; undefined for a first one. */
  readonly subscriptionId: string | undefined;
  /** `OFFSET_FIRST`, `OFFSET_LAST` or an eventId, exclusive; undefined counts as `OFFSET_LAST`. Ignored when a subscription continues. */
  readonly offset: string | undefined;
  /** Signing secret of the callbacks; undefined for none. */
  readonly secret: string | undefined;
}

export interface UnsubscribeCall {
  readonly subscriptionId: string;
  /** The interface that the call came by: JSON-RPC refuses it without a coordinator (100601). */
  readonly interfaceType: InterfaceType;
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

/** What was left out of a group's index, newest first. */
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
  /** What an operator should know though the group serves. */
  readonly warning?: string | undefined;
  /** Whether this node reads the chain and writes the index, or is told by the node that does. */
  readonly role?: "follows" | "watches";
  /** Active subscriptions that this node delivers. */
  readonly subscriptions?: number;
  readonly indexedBlock: number;
  /** The newest block of the chain that was heard of, final or not. */
  readonly headBlock?: number | undefined;
  /** Which chain it is, where the registry is, and who signs; as far as is known. */
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

/**
 * Every operation of the broker, for gateways of any protocol. Inputs are what clients wrote; whatever is wrong with them is thrown
 * as a BrokerError of the catalogue, and nothing is changed then.
 */
export interface Broker {
  open(call: TopicCall): Promise<void>;
  close(call: TopicCall): Promise<void>;
  exist(call: TopicCall): Promise<boolean>;
  state(call: TopicCall): Promise<Topic>;
  list(call: ListCall): Promise<ListResult>;
  /**
   * Publishes. Settles with SUCCESS once the event is durable on the chain and found by getEvent, with TIMEOUT when its fate is not known
   * in time, with REFUSED (100101, 100112, 200202, 200205, 200300) when it was not published. Throws where that is known at once. Events of
   * one topic are committed in the order in which they were submitted.
   */
  submit(call: PublishCall, onSettled: OnSettled): void;
  /** Gives a connection its session. @throws BrokerError 200205, 200211, 200300. */
  attach(order: AttachOrder, peer: Peer): Attachment;
  subscribe(call: SubscribeCall): Promise<SubscriptionId>;
  unSubscribe(call: UnsubscribeCall): Promise<void>;
  getEvent(call: { readonly eventId: string; readonly groupId: string | undefined }): Promise<EventResult>;
  getProof(call: { readonly eventId: string; readonly groupId: string | undefined }): Promise<ProofResult>;
  /** Every live node, also those that deliver none. */
  listSubscriptions(): Promise<readonly NodeListing[]>;
  /** Also of a group that is not up. */
  listSkippedEntries(call: SkippedEntriesCall): Promise<SkippedEntriesResult>;
  health(): readonly GroupHealth[];
  /** Undefined where this process has the store alone. */
  node(): NodeHealth | undefined;
}
