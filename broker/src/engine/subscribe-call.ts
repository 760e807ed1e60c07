import type { DeliveryOptionsCall } from "../domain/delivery-options.ts";
import type { WebhookFormat } from "../domain/subscription.ts";

export interface SubscribeCall {
  /** A topic, or a pattern. */
  readonly topic: string;
  readonly groupId: string | undefined;
  readonly url: string;
  /** Format of the callbacks. */
  readonly format: WebhookFormat;
  /** Identifier of the subscription to continue, or to create if there is none; undefined for a new one whose identifier the broker makes. */
  readonly subscriptionId: string | undefined;
  /** `OFFSET_FIRST`, `OFFSET_LAST` or an eventId, exclusive; undefined counts as `OFFSET_LAST`. Ignored when a subscription continues. */
  readonly offset: string | undefined;
  /** Signing secret of the callbacks; undefined for none. With {@link onSecret}, `generate` asks the broker to make one. */
  readonly secret: string | undefined;
  /** Called with the secret that the broker made, once the subscription has it. */
  readonly onSecret?: ((secret: string) => void) | undefined;
  /** How to deliver. If left out, a new subscription gets the defaults, and a continued one keeps its options. */
  readonly options?: DeliveryOptionsCall | undefined;
}
