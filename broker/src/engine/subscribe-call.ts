import type { DeliveryOptionsCall } from "../domain/delivery-options.ts";
import type { WebhookFormat } from "../domain/subscription.ts";

export interface SubscribeCall {
  /** A topic, or a pattern. */
  readonly topic: string;
  readonly groupId: string | undefined;
  readonly url: string;
  /** Form of the callbacks. */
  readonly format: WebhookFormat;
  /** Identifier of an earlier subscription, to continue it; undefined for a first one. */
  readonly subscriptionId: string | undefined;
  /** `OFFSET_FIRST`, `OFFSET_LAST` or an eventId, exclusive; undefined counts as `OFFSET_LAST`. Ignored when a subscription continues. */
  readonly offset: string | undefined;
  /** Signing secret of the callbacks; undefined for none. `generate` stands for one that the broker makes, where {@link onSecret} is given. */
  readonly secret: string | undefined;
  /** Told the secret that the broker made, once the subscription has it. */
  readonly onSecret?: ((secret: string) => void) | undefined;
  /** How to deliver; as usual if left out, and as before when a subscription continues. */
  readonly options?: DeliveryOptionsCall | undefined;
}
