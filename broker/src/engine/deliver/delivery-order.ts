import type { CallbackSubscription } from "../../domain/subscription.ts";
import type { TenantNames } from "../../domain/tenant-names.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { CancelSignal } from "../../lib/cancellation.ts";
import type { OriginSource } from "../broker.ts";
import type { Feed } from "../dispatch/feed.ts";
import type { AcceptedAhead } from "./accepted-ahead.ts";

/** What one worker delivers, and from where. */
export interface DeliveryOrder {
  readonly subscription: CallbackSubscription;
  readonly feed: Feed;
  /** What the worker before has delivered beyond the cursor; nothing if left out. */
  readonly ahead?: AcceptedAhead | undefined;
  /** Whether this node may still deliver; always if left out. */
  readonly mayStart?: (() => boolean) | undefined;
  /** Whether events of a topic may reach the subscriber by now; all may if left out. */
  readonly mayReceive?: ((topic: TopicName) => boolean) | undefined;
  /** Waits for the turn of an attempt; undefined where it may be made at once. */
  readonly turn?: ((signal: CancelSignal) => Promise<void> | undefined) | undefined;
  /** How the subscriber calls the topics; by their real names if left out. */
  readonly names?: TenantNames | undefined;
  /** Where events come from, for a form of callback that says it. */
  readonly origins?: OriginSource | undefined;
}
