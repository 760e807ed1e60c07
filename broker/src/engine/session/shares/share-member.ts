import type { Event } from "../../../domain/event.ts";
import type { QoS } from "../../../domain/session-filter.ts";
import type { SessionKey, ShareId } from "../../../ports/session-store.ts";

/** A connected session of this node, as a share sees it. */
export interface ShareMember {
  /** Whether the member accepts an event of the share now. When it accepts one again, it calls {@link Shares.wake}. */
  readonly hasRoom: boolean;
  /** Reserves room for an event. Call it only while `hasRoom` is true. */
  reserve(event: Event): Reservation;
  /** Delivers an event that is never committed. */
  pass(event: Event): void;
}

/** Room for one event at a member. Call `give` or `cancel` exactly once. */
export interface Reservation {
  readonly to: SessionKey;
  readonly qos: QoS;
  /** Delivers the event, which the store has assigned to the member. Without `share`, the store does not keep the event for the member. */
  give(share: ShareId | undefined): void;
  cancel(): void;
}
