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
import type { Wills } from "./stored/wills.ts";
import type { StoredFilter, SessionId } from "../../ports/session-store.ts";
import type { Position } from "../../domain/position.ts";
import type { StartPosition } from "../broker.ts";
import type { Feed, FeedRequest } from "../dispatch/feed.ts";
import type { EventIds } from "../event-ids.ts";
import type { IndexProgress } from "../index-progress.ts";
import type { FilterOwners } from "./filter-set.ts";
import type { MembershipsParts } from "./shares/memberships.ts";
import type { RetainedParts } from "./retained/retained.ts";
import type { RetainedReadsParts } from "./retained/retained-reads.ts";
import type { SessionProgress } from "./stored/session-codec.ts";
import type { WritableSession } from "./stored/session-writer.ts";
import type { Inbound } from "./unreleased.ts";
import type { WaitingParts } from "./waiting.ts";
import type { SessionTimes } from "./stored/session-times.ts";

export interface SessionParts extends RetainedParts, WaitingParts, MembershipsParts {
  readonly store: Pick<Store, "sessions" | "shares">;
  readonly progress: IndexProgress;
  readonly eventIds: EventIds;
  readonly createFeed: (request: FeedRequest) => Feed;
  readonly filterOwners: FilterOwners;
}

/** Copies field by field to save memory: see `toFeedOptions`. */
export function toSessionParts(
  group: Omit<ReaderParts, "retainedReads">,
  own: Omit<MembershipsParts, "slices"> & Pick<SessionParts, "retainedReads" | "filterOwners">,
): SessionParts {
  const { groupId, progress, slices, extensionPrefix, mayReceive, clock, logger, limits, troubles } = group;
  const { store, eventIds, createFeed } = group;
  const { retainedReads, shares, mayReceiveAll, filterOwners } = own;
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
    filterOwners,
  };
}

/** The state with which a session begins or continues at this node. */
export interface SessionOrigin {
  readonly id: SessionId;
  readonly protocol: SessionProtocol;
  readonly epoch: number;
  /** Position up to which every event was delivered or skipped. */
  readonly taken: Position;
  /** See `SessionState.outside`. */
  readonly outside: Position;
  readonly underWay: SessionProgress;
  /** Publishes of QoS 2 of earlier connections. */
  readonly inbound: Inbound;
  readonly filters: readonly StoredFilter[];
  /** Stores the session; undefined if it lives only in memory. */
  readonly keeper: Keeper | undefined;
  /** Whether the index rolls back. */
  readonly isStopped: boolean;
}

/** Stores changes of sessions. */
export interface Keeper {
  /** Call it when the session has changed. */
  note(session: WritableSession): void;
  /** Resolves when the session's current state is on disk; never if it cannot be stored. */
  written(session: WritableSession): Promise<void>;
}

/** Dependencies of a session and of a share of one group. */
export type ReaderParts = Omit<SessionParts, Exclude<keyof MembershipsParts, "slices"> | "filterOwners">;

/**
 * Finds the position after which a subscription begins, and reads the generation of the index before that. Treats an event as missing if `mayFind` refuses
 * its topic. @throws BrokerError 100300 to 100304.
 */
export type FindStart = (
  group: Group,
  offset: string,
  mayFind?: (topic: TopicName) => boolean,
) => Promise<StartPosition>;

/** Dependencies of the sessions of a node. */
export interface SessionsParts {
  readonly limits: EngineLimits;
  readonly groups: Groups;
  readonly store: Pick<Store, "sessions" | "shares" | "listRetained" | "readBatches" | "findSubscription">;
  /** The same store without dropped events, which `readDropped` reads from the chain. */
  readonly storeWithoutDropped: Pick<Store, "listRetained" | "readBatches">;
  readonly readDropped: RetainedReadsParts["readDropped"];
  /** Finds where a new subscription begins, given its offset. */
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
  /** This node's identifier; undefined for a single node. @throws BrokerError 200207 while the node is not a member. */
  readonly nodeId: () => NodeId | undefined;
  /** Whether nodes share the store: then another node may have the client's earlier connection. */
  readonly isShared: boolean;
  /** Whether the broker is a restored copy for inspection: see `EngineOptions`. */
  readonly isRestored?: boolean | undefined;
  /** Dependencies of a session or share of a group; `mayReceive` says which topics may reach it. */
  readonly toSessionParts: (
    groupId: GroupId,
    mayReceive: (topic: TopicName) => boolean,
  ) => Omit<ReaderParts, "retainedReads">;
}
