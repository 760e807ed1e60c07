import type { Event } from "../../../domain/event.ts";
import type { Position } from "../../../domain/position.ts";
import type { ShareTake, StoredShare } from "../../../ports/share-store.ts";
import type { ShareId } from "../../../ports/session-store.ts";
import type { Feed } from "../../dispatch/feed.ts";
import type { Reservation, ShareMember } from "./share-member.ts";

/** Maximum number of events that one transaction takes from a share. */
const takenMax = 256;

export interface SharePlanParts {
  /** The share as this node read it. */
  readonly share: StoredShare;
  /** The events after the share's cursor. */
  readonly feed: Pick<Feed, "peek" | "advance">;
  /** Members that may have room. The one whose turn is next comes first. */
  readonly members: Set<ShareMember>;
  /** Members that had no room when they were last asked. */
  readonly full: Set<ShareMember>;
}

/**
 * The first member with room; undefined if none has. Moves the members before it to `full`, so that nobody asks them again before they wake the share: a
 * share may have thousands of members whose windows are full, and each acknowledgement looks for a member.
 */
export function findRoom(members: Set<ShareMember>, full: Set<ShareMember>): ShareMember | undefined {
  for (const member of members) {
    if (member.hasRoom) return member;
    members.delete(member);
    full.add(member);
  }
  return undefined;
}

interface Reserved {
  readonly event: Event;
  readonly reservation: Reservation;
  /** Whether the store keeps the event for the member. If not, nobody gets it once the member's connection has ended. */
  readonly isGift: boolean;
}

/** Plans which events of a share its members at this node get next. The plan holds as long as no other node takes events from the share. */
export class SharePlan {
  readonly #parts: SharePlanParts;
  readonly id: ShareId;
  #epoch: number;
  #cursor: Position;
  #returned: Event[] = [];
  #dropped: Position[] = [];
  #reserved: Reserved[] = [];

  constructor(parts: SharePlanParts) {
    this.#parts = parts;
    this.id = parts.share.id;
    this.#epoch = parts.share.epoch;
    this.#cursor = parts.share.cursor;
  }

  /** Whether the plan has no returned event, and a member has room for one. */
  get wantsReturned(): boolean {
    return this.#returned.length === 0 && findRoom(this.#parts.members, this.#parts.full) !== undefined;
  }

  addReturned(event: Event): void {
    this.#returned.push(event);
  }

  /** Has the next take remove a returned event from the store. Call it if the event is no longer on the chain. */
  drop(position: Position): void {
    this.#dropped.push(position);
  }

  /** The events that members have room for; undefined if there are none. Call {@link give} or {@link cancel} afterwards. */
  fill(): ShareTake | undefined {
    this.#returned = this.#returned.filter((event) => !this.#reserve(event, { isReturned: true }));
    this.#fillFromFeed();
    if (this.#reserved.length === 0 && this.#dropped.length === 0) return undefined;
    const gifts = this.#reserved.flatMap(({ event: { topic, position }, reservation: { to }, isGift }) => {
      return isGift ? { topic, position, to } : [];
    });
    return { id: this.id, epoch: this.#epoch, cursor: this.#cursor, gifts, dropped: this.#dropped };
  }

  /** Delivers the events that {@link fill} returned. Call it once the store has recorded them. */
  give(): void {
    const reserved = this.#reserved;
    this.#epoch += 1;
    this.#reserved = [];
    this.#dropped = [];
    for (const { reservation, isGift } of reserved) reservation.give(isGift ? this.id : undefined);
  }

  /** Ends the plan. Call it if the store has not recorded the events. */
  cancel(): void {
    for (const { reservation } of this.#reserved) reservation.cancel();
    this.#reserved = [];
  }

  #fillFromFeed(): void {
    const { feed } = this.#parts;
    for (let event = feed.peek(); event !== undefined; event = feed.peek()) {
      if (!this.#reserve(event, { isReturned: false })) return;
      feed.advance();
      this.#cursor = event.position;
    }
  }

  /** Reserves room at a member. Returns false if none has room, or if the plan is full. Then the event waits, also for members at other nodes. */
  #reserve(event: Event, { isReturned }: { readonly isReturned: boolean }): boolean {
    const { members, full } = this.#parts;
    if (this.#reserved.length >= takenMax) return false;
    const member = findRoom(members, full);
    if (member === undefined) return false;
    members.delete(member); // The others come first now.
    members.add(member);
    const reservation = member.reserve(event);
    // A member acknowledges no event of QoS 0. But if the event was returned, another member had it with a higher QoS, so the store keeps it until this member
    // has it.
    this.#reserved.push({ event, reservation, isGift: isReturned || reservation.qos > 0 });
    return true;
  }
}
