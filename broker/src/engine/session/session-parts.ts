import type { GroupId } from "../../domain/group-id.ts";
import type { SessionProtocol } from "../../domain/subscription.ts";
import type { NodeId } from "../../domain/node.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { Logger } from "../../lib/logger.ts";
import type { TimeSlices } from "../../lib/time-slices.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Randomness } from "../../ports/randomness.ts";
import type { Store } from "../../ports/store.ts";
import type { Access } from "../access/access.ts";
import type { Group, Groups } from "../group.ts";
import type { EngineLimits } from "../limits.ts";
import type { Wills } from "./wills.ts";
import type { StoredFilter, SessionId } from "../../ports/session-store.ts";
import type { Position } from "../../domain/position.ts";
import type { StartPosition } from "../broker.ts";
import type { Feed, FeedOrder } from "../dispatch/feed.ts";
import type { EventIds } from "../event-ids.ts";
import type { IndexProgress } from "../index-progress.ts";
import type { MembershipsParts } from "./memberships.ts";
import type { RetainedParts } from "./retained.ts";
import type { RetainedReadsParts } from "./retained-reads.ts";
import type { UnderWay } from "./session-codec.ts";
import type { Written } from "./session-writer.ts";
import type { Inbound } from "./unreleased.ts";
import type { WaitingParts } from "./waiting.ts";
import type { SessionTimes } from "./session-times.ts";

export interface SessionParts extends RetainedParts, WaitingParts, MembershipsParts {
  readonly store: Pick<Store, "sessions">;
  readonly progress: IndexProgress;
  readonly eventIds: EventIds;
  readonly createFeed: (order: FeedOrder) => Feed;
}

/** Field by field: see `toFeedOptions`. */
export function toSessionParts(
  group: Omit<ReaderParts, "retainedReads">,
  own: MembershipsParts & Pick<SessionParts, "retainedReads">,
): SessionParts {
  const { groupId, progress, slices, extensionPrefix, mayReceive, clock, logger, limits, troubles } = group;
  const { store, eventIds, createFeed } = group;
  const { retainedReads, shares, mayReceiveAll } = own;
  return {
    groupId,
    progress,
    slices,
    extensionPrefix,
    mayReceive,
    clock,
    logger,
    limits,
    troubles,
    store,
    eventIds,
    createFeed,
    retainedReads,
    shares,
    mayReceiveAll,
  };
}

/** A session as it is taken up. */
export interface SessionOrigin {
  readonly id: SessionId;
  readonly protocol: SessionProtocol;
  readonly epoch: number;
  /** Every event up to here was given or passed. */
  readonly taken: Position;
  readonly underWay: UnderWay;
  /** Publishes of QoS 2 of earlier connections. */
  readonly inbound: Inbound;
  readonly filters: readonly StoredFilter[];
  /** Writes it down; undefined for one that lives in memory alone. */
  readonly keeper: Keeper | undefined;
  /** Whether the index rolls back. */
  readonly isStopped: boolean;
}

/** Who writes a session down. */
export interface Keeper {
  /** The session has changed. */
  note(session: Written): void;
  /** Answers when what the session is now is on disk; never where it cannot be. */
  written(session: Written): Promise<void>;
}

/** What a session and a share of one group work with. */
export type ReaderParts = Omit<SessionParts, keyof MembershipsParts>;

/**
 * Finds the position after which a subscription begins, and the generation of the index before it was found. An event of a topic that `mayFind`
 * refuses does not exist. @throws BrokerError 100300 to 100304.
 */
export type FindStart = (
  group: Group,
  offset: string,
  mayFind: (topic: TopicName) => boolean,
) => Promise<StartPosition>;

/** What the sessions of a node work with. */
export interface SessionsParts {
  readonly limits: EngineLimits;
  readonly groups: Groups;
  readonly store: Pick<Store, "sessions" | "listRetained" | "readBatches" | "findSubscription">;
  /** The same without the events that it has dropped, which `fill` gives. */
  readonly keptStore: Pick<Store, "listRetained" | "readBatches">;
  readonly fill: RetainedReadsParts["fill"];
  /** Where a new subscription begins, given its offset. */
  readonly findStart: FindStart;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly logger: Logger;
  readonly slices: TimeSlices;
  readonly access: Access;
  readonly wills: Wills;
  /** Forgets the publish keys of a session that has ended. Never rejects. */
  readonly inlet: { forget(groupId: GroupId, sessionId: SessionId): Promise<void> };
  readonly times: SessionTimes;
  /** This node among others; undefined where it has the store alone. @throws BrokerError 200207 while it is no member. */
  readonly nodeId: () => NodeId | undefined;
  /** Whether other nodes may have the client's earlier connection. */
  readonly isShared: boolean;
  /** What a session or share of a group works with, given which topics may reach it. */
  readonly toSessionParts: (
    groupId: GroupId,
    mayReceive: (topic: TopicName) => boolean,
  ) => Omit<ReaderParts, "retainedReads">;
}
