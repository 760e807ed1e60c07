import type { StoredFilter, SessionId } from "../../ports/session-store.ts";
import type { Position } from "../../domain/position.ts";
import type { Feed, FeedOrder } from "../dispatch/feed.ts";
import type { EventIds } from "../event-ids.ts";
import type { IndexProgress } from "../index-progress.ts";
import type { MembershipsParts } from "./memberships.ts";
import type { RetainedParts } from "./retained.ts";
import type { UnderWay } from "./session-codec.ts";
import type { Written } from "./session-writer.ts";
import type { WaitingParts } from "./waiting.ts";

export interface SessionParts extends RetainedParts, WaitingParts, MembershipsParts {
  readonly progress: IndexProgress;
  readonly eventIds: EventIds;
  readonly createFeed: (order: FeedOrder) => Feed;
}

/** A session as it is taken up. */
export interface SessionOrigin {
  readonly id: SessionId;
  readonly epoch: number;
  /** Every event up to here was given or passed. */
  readonly taken: Position;
  readonly underWay: UnderWay;
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
export type ReaderParts = Omit<SessionParts, "shares">;
