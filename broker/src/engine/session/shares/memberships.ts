import type { Event } from "../../../domain/event.ts";
import type { SessionFilter } from "../../../domain/session-filter.ts";
import { eventFilterOf } from "../../../domain/shared-filter.ts";
import type { TopicFilter } from "../../../domain/topic-filter.ts";
import type { Reservation, ShareMember } from "./share-member.ts";
import type { Shares } from "./shares.ts";
import { LazyMap, LazySet } from "../../../lib/lazy-collections.ts";
import type { TimeSlices } from "../../../lib/time-slices.ts";

export interface MembershipsParts {
  readonly shares: Pick<Shares, "join" | "leave" | "wake">;
  readonly slices: TimeSlices;
  /** Whether all events that match a filter may reach the session's client. */
  readonly mayReceiveAll: (filter: TopicFilter) => boolean;
}

/** The part of a session that its shares use. */
export interface SharingSession {
  /** Whether the session's client is connected and accepts another event. */
  readonly hasRoom: () => boolean;
  readonly reserve: (event: Event, sessionFilter: SessionFilter) => Reservation;
  readonly pass: (event: Event, sessionFilter: SessionFilter) => void;
}

interface Membership {
  sessionFilter: SessionFilter;
  readonly member: ShareMember;
}

/**
 * The shares that one session is a member of, by the text of their filters. If the session's rights do not cover a share's filter, the session takes no event
 * of that share: an event that it took and could not deliver would be lost for the members that may receive it.
 */
export class Memberships {
  readonly #parts: MembershipsParts;
  readonly #session: SharingSession;
  readonly #memberships = new LazyMap<TopicFilter, Membership>();
  /** Shares that offered an event to the session while its rights did not cover their filters. */
  readonly #withoutRights = new LazySet<TopicFilter>();
  /** Shares that asked for room when the session had none, and that {@link wake} has not woken since. */
  readonly #withoutRoom = new LazySet<TopicFilter>();
  #hasJoined = false;
  /** Set by {@link leaveAll}: a subscribe that the store is writing may finish after the connection has ended. */
  #hasLeft = false;

  constructor(parts: MembershipsParts, session: SharingSession) {
    this.#parts = parts;
    this.#session = session;
  }

  /** Whether the session has been a member of any share. Then it may still have events of shares. */
  get hasJoined(): boolean {
    return this.#hasJoined;
  }

  find(text: TopicFilter): SessionFilter | undefined {
    return this.#memberships.get(text)?.sessionFilter;
  }

  /** Joins a share, or changes the options of a membership. Returns false if the session was a member already, or after {@link leaveAll}. */
  join(sessionFilter: SessionFilter): boolean {
    if (this.#hasLeft) return false;
    const known = this.#memberships.get(sessionFilter.filter);
    if (known !== undefined) {
      known.sessionFilter = sessionFilter;
      return false;
    }
    this.#hasJoined = true;
    const membership: Membership = {
      sessionFilter,
      member: this.#createMember(sessionFilter.filter, () => membership.sessionFilter),
    };
    this.#memberships.set(sessionFilter.filter, membership);
    this.#parts.shares.join(sessionFilter.filter, membership.member);
    return true;
  }

  /** Leaves a share. The session keeps its unacknowledged events until it disconnects. Returns whether it was a member. */
  leave(text: TopicFilter): boolean {
    const membership = this.#memberships.get(text);
    if (membership === undefined) return false;
    this.#memberships.delete(text);
    this.#withoutRights.delete(text);
    this.#withoutRoom.delete(text);
    this.#parts.shares.leave(text, membership.member);
    return true;
  }

  /**
   * Call it when the session's connection has ended: from then on, it has no room. Leaves in slices: thousands of sessions with a hundred shares each may lose
   * their connections in one turn. Never rejects.
   */
  async leaveAll(): Promise<void> {
    this.#hasLeft = true;
    for (const text of this.#memberships.keys()) {
      const pause = this.#parts.slices.pause();
      if (pause !== undefined) await pause;
      this.leave(text);
    }
  }

  /** Continues the deliveries of the shares that found no room. Call it when the session may have room again: after every acknowledgement, for example. */
  wake(): void {
    if (!this.#session.hasRoom()) return; // Each share would only ask again, and find no room.
    for (const text of this.#withoutRoom) {
      this.#withoutRoom.delete(text);
      this.#wakeShare(text);
    }
  }

  /** Shares whose events wait because the session's rights do not cover their filters. */
  get withoutRights(): Iterable<TopicFilter> {
    return this.#withoutRights;
  }

  /** Checks again which shares the session's rights cover. Call it when the rights may have changed. */
  checkRights(): void {
    for (const text of this.#withoutRights) {
      if (!this.#isCovered(text)) continue;
      this.#withoutRights.delete(text);
      this.#wakeShare(text);
    }
  }

  #wakeShare(text: TopicFilter): void {
    const membership = this.#memberships.get(text);
    if (membership !== undefined) this.#parts.shares.wake(text, membership.member);
  }

  #createMember(text: TopicFilter, sessionFilter: () => SessionFilter): ShareMember {
    const session = this.#session;
    const hasRoom = (): boolean => this.#hasRoom(text);
    return {
      get hasRoom() {
        return hasRoom();
      },
      reserve: (event) => session.reserve(event, sessionFilter()),
      pass: (event) => session.pass(event, sessionFilter()),
    };
  }

  #hasRoom(text: TopicFilter): boolean {
    if (this.#session.hasRoom()) return !this.#lacksRights(text);
    this.#withoutRoom.add(text);
    return false;
  }

  #lacksRights(text: TopicFilter): boolean {
    if (!this.#withoutRights.has(text) && !this.#isCovered(text)) this.#withoutRights.add(text);
    return this.#withoutRights.has(text);
  }

  #isCovered(text: TopicFilter): boolean {
    return this.#parts.mayReceiveAll(eventFilterOf(text));
  }
}
