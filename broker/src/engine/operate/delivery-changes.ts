import { BrokerError, quote } from "@stele/wire";
import { changeOptions } from "../../domain/delivery-options.ts";
import { parseCallbackFilter } from "../../domain/shared-filter.ts";
import { checkSecret, moveRotationEnd, readSecrets, rotateSecret } from "../../domain/signing-secret.ts";
import type { CallbackSubscription } from "../../domain/subscription.ts";
import { isPattern, type TopicFilter } from "../../domain/topic-filter.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Sink } from "../../ports/sink.ts";
import type { SubscriptionMove } from "../../ports/subscription-search.ts";
import type { Access } from "../access/access.ts";
import type { Group } from "../group.ts";
import type { DeliveryChange } from "./calls.ts";

/** How long the previous secret also signs, in milliseconds, unless the order says otherwise. */
export const rotationMsDefault = 24 * 60 * 60 * 1_000;

export interface DeliveryChangesOptions {
  readonly sink: Pick<Sink, "checkTarget">;
  readonly clock: Pick<Clock, "now">;
  readonly access: Pick<Access, "receiverOf">;
}

/** Checks changes that operators order for the delivery of a subscription, and computes their result. */
export class DeliveryChanges {
  readonly #options: DeliveryChangesOptions;

  constructor(options: DeliveryChangesOptions) {
    this.#options = options;
  }

  /**
   * Refuses what a subscribe call would refuse, and asks the receiver of a new url for its consent.
   * @throws BrokerError 100101 to 100103, 100106, 100109, 100501, 100506, 100507, 100702, 200001.
   */
  async check(current: CallbackSubscription, change: DeliveryChange, group: Group): Promise<void> {
    if (typeof change.secret === "string") checkSecret(change.secret);
    const { filter, delivery } = this.toMove(current, change);
    if (filter !== undefined) await this.#checkFilter(current, filter, group);
    if (delivery.url !== current.delivery.url) await this.#options.sink.checkTarget({ id: current.id, ...delivery });
  }

  /** @throws BrokerError 100507 if the change keeps a secret that cannot be decrypted; for a topic as {@link check}. */
  toMove(
    current: CallbackSubscription,
    change: DeliveryChange,
  ): SubscriptionMove & Pick<CallbackSubscription, "delivery"> {
    const { delivery, state, heldState = "active" } = current;
    const { topic, url = delivery.url, kind: format = delivery.format } = change;
    const options = changeOptions(delivery.options, change);
    const secret = this.#toSecret(current, change);
    return {
      delivery: { kind: "webhook", format, url, secret, ...(options && { options }) },
      ...(topic !== undefined && { filter: parseCallbackFilter(topic) }),
      // A new secret, or the removal of the secret, unlocks the subscription. Only `resume` ends a pause or a suspension.
      ...(state === "locked" && { state: heldState }),
    };
  }

  #toSecret({ delivery, state }: CallbackSubscription, change: DeliveryChange): string | undefined {
    const { secret: kept, url } = delivery;
    const { secret, rotationMs } = change;
    if (change.url !== undefined && change.url !== url) return secret ?? undefined;
    if (secret === undefined && state === "locked") {
      const details = "its secret cannot be decrypted: give a new one, or null for none";
      throw new BrokerError("subscriptionHeld", { details });
    }
    if (secret === undefined) return kept;
    if (secret === null || kept === undefined || rotationMs === 0) return secret ?? undefined;
    const now = this.#options.clock.now();
    const until = now + (rotationMs ?? rotationMsDefault);
    const isCurrent = readSecrets(kept).current === secret;
    if (isCurrent && rotationMs !== undefined) return moveRotationEnd(kept, { now, until });
    return rotateSecret(kept, secret, { until });
  }

  async #checkFilter(current: CallbackSubscription, filter: TopicFilter, group: Group): Promise<void> {
    if (!this.#options.access.receiverOf(current)(filter)) {
      throw new BrokerError("accessDenied", { details: `the owner may not receive all of ${quote(filter)}` });
    }
    if (!isPattern(filter)) await group.getTopic(parseTopicName(filter));
  }
}
