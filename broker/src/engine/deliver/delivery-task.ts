import type { CallbackSubscription } from "../../domain/subscription.ts";
import type { TenantNames } from "../../domain/tenant-names.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { CancelSignal } from "../../lib/cancellation.ts";
import type { OriginSource } from "../broker.ts";
import type { Feed } from "../dispatch/feed.ts";
import type { AcceptedAhead } from "./accepted-ahead.ts";

/** The subscription that a worker delivers, and its feed. */
export interface DeliveryTask {
  readonly subscription: CallbackSubscription;
  readonly feed: Feed;
  /** Events beyond the cursor that an earlier worker has delivered; none if left out. */
  readonly ahead?: AcceptedAhead | undefined;
  /** Whether this node may still deliver; always if left out. */
  readonly mayStart?: (() => boolean) | undefined;
  /** Whether the subscriber may receive events of a topic now; it may receive all if left out. */
  readonly mayReceive?: ((topic: TopicName) => boolean) | undefined;
  /** Waits until the owner's quota allows an attempt; undefined if it needs no wait. */
  readonly turn?: ((signal: CancelSignal) => Promise<void> | undefined) | undefined;
  /** The names of the subscriber's tenant; if left out, it sees the real topic names. */
  readonly names?: TenantNames | undefined;
  /** Origins of events, for callback forms that contain them. */
  readonly origins?: OriginSource | undefined;
}
