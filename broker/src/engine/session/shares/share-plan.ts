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

/** Plans which events of a share its members at this node get next. The plan holds as long as no other node takes events from the share. */
export class SharePlan {
  readonly #parts: SharePlanParts;
  readonly id: ShareId;
  #epoch: number;
  #cursor: Position;
  #returned: Event[] = [];
  #dropped: Position[] = [];
  #reserved: { readonly event: Event; readonly reservation: Reservation }[] = [];

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

  /** Has the next take remove a returned event from the store: it is no longer on the chain, or a member gets it with QoS 0. */
  drop(position: Position): void {
    this.#dropped.push(position);
  }

  /** The events that members have room for; undefined if there are none. Call {@link give} or {@link cancel} afterwards. */
  fill(): ShareTake | undefined {
    this.#returned = this.#returned.filter((event) => !this.#reserve(event));
    // Nobody acknowledges an event of QoS 0: if the store kept it, each check would find it again.
    for (const { event, reservation } of this.#reserved) if (reservation.qos === 0) this.drop(event.position);
    this.#fillFromFeed();
    if (this.#reserved.length === 0 && this.#dropped.length === 0) return undefined;
    const gifts = this.#reserved.flatMap(({ event: { topic, position }, reservation: { qos, to } }) => {
      return qos === 0 ? [] : { topic, position, to };
    });
    return { id: this.id, epoch: this.#epoch, cursor: this.#cursor, gifts, dropped: this.#dropped };
  }

  /** Delivers the events that {@link fill} returned. Call it once the store has recorded them. */
  give(): void {
    const reserved = this.#reserved;
    this.#epoch += 1;
    this.#reserved = [];
    this.#dropped = [];
    for (const { reservation } of reserved) reservation.give(this.id);
  }

  /** Ends the plan. Call it if the store has not recorded the events. */
  cancel(): void {
    for (const { reservation } of this.#reserved) reservation.cancel();
    this.#reserved = [];
  }

  #fillFromFeed(): void {
    const { feed } = this.#parts;
    for (let event = feed.peek(); event !== undefined; event = feed.peek()) {
      if (!this.#reserve(event)) return;
      feed.advance();
      this.#cursor = event.position;
    }
  }

  /** Reserves room at a member. Returns false if none has room, or if the plan is full. Then the event waits, also for members at other nodes. */
  #reserve(event: Event): boolean {
    const { members, full } = this.#parts;
    if (this.#reserved.length >= takenMax) return false;
    const member = findRoom(members, full);
    if (member === undefined) return false;
    members.delete(member); // The others come first now.
    members.add(member);
    this.#reserved.push({ event, reservation: member.reserve(event) });
    return true;
  }
}
