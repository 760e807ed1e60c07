import type { Event } from "../../domain/event.ts";
import type { QoS } from "../../domain/session-filter.ts";
import type { SessionKey, ShareId } from "../../ports/session-store.ts";

/** A session of this node with its connection, as a share sees it. */
export interface ShareMember {
  /** Whether it takes any event of the share now. It calls {@link Shares.wake} once it does again. */
  readonly hasRoom: boolean;
  /** Keeps room for an event. To be called only while it has room. */
  reserve(event: Event): Reservation;
  /** Gives an event that is committed nowhere. */
  pass(event: Event): void;
}

/** Room for one event at a member. One of its methods is to be called, once. */
export interface Reservation {
  readonly to: SessionKey;
  readonly qos: QoS;
  /** The event is the member's in the store. */
  give(share: ShareId): void;
  cancel(): void;
}
