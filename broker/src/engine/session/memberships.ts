import type { DeliveryWindow } from "../../domain/delivery-window.ts";
import type { Event } from "../../domain/event.ts";
import type { SessionFilter } from "../../domain/session-filter.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { ShareMember } from "./share.ts";
import type { Shares } from "./shares.ts";

export interface MembershipsParts {
  readonly shares: Shares;
  /** Whether events of a topic may reach the session's client. */
  readonly mayReceive: (topic: TopicName) => boolean;
}

/** What a session does for the shares that it is a member of. */
export interface SharingSession {
  /** Whether its client is connected and takes another event. */
  readonly hasRoom: () => boolean;
  readonly give: (event: Event, order: SessionFilter) => void;
}

interface Membership {
  order: SessionFilter;
  readonly member: ShareMember;
}

/** The shares that one session is a member of, by the text of their filters. */
export class Memberships {
  readonly #parts: MembershipsParts;
  readonly #session: SharingSession;
  readonly #memberships = new Map<TopicFilter, Membership>();

  constructor(parts: MembershipsParts, session: SharingSession) {
    this.#parts = parts;
    this.#session = session;
  }

  get size(): number {
    return this.#memberships.size;
  }

  find(text: TopicFilter): SessionFilter | undefined {
    return this.#memberships.get(text)?.order;
  }

  /** Joins a share, or changes how the session is its member. Answers whether it joined. */
  join(order: SessionFilter): boolean {
    const known = this.#memberships.get(order.filter);
    if (known !== undefined) {
      known.order = order;
      return false;
    }
    const membership = { order, member: this.#createMember(order.filter) };
    this.#memberships.set(order.filter, membership);
    this.#parts.shares.join(order.filter, membership.member);
    return true;
  }

  /** What the session has not acknowledged stays with it until it disconnects. Answers whether it was a member. */
  leave(text: TopicFilter): boolean {
    const membership = this.#memberships.get(text);
    if (membership === undefined) return false;
    this.#memberships.delete(text);
    this.#parts.shares.leave(text, membership.member);
    return true;
  }

  leaveAll(): void {
    for (const text of this.#memberships.keys()) this.leave(text);
  }

  /** The session may have room again. */
  wake(): void {
    for (const text of this.#memberships.keys()) this.#parts.shares.wake(text);
  }

  /**
   * The client is gone: others get what it has not acknowledged of QoS 1. An event of QoS 2 waits for this client, since nobody knows whether it has
   * it (MQTT 5.0, [MQTT-4.8.2-4]).
   */
  handBack(window: DeliveryWindow): void {
    const shared = Array.from(window.entries).filter(({ share, qos }) => share !== undefined && qos === 1);
    for (const { ticket, share, topic, position } of shared) {
      if (share !== undefined && this.#parts.shares.takeBack(share, { topic, position })) window.acknowledge(ticket);
    }
  }

  #createMember(text: TopicFilter): ShareMember {
    const session = this.#session;
    return {
      mayReceive: this.#parts.mayReceive,
      get hasRoom() {
        return session.hasRoom();
      },
      give: (event) => {
        const order = this.find(text);
        if (order !== undefined) session.give(event, order);
      },
    };
  }
}
