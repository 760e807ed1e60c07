import { BrokerError } from "@stele/wire";
import { areSameOptions, changeOptions } from "../../domain/delivery-options.ts";
import { readSecrets } from "../../domain/signing-secret.ts";
import type { CallbackSubscription, Subscription } from "../../domain/subscription.ts";
import type { CallbackChange } from "../../ports/store.ts";
import { type Caller, nobody, ownerOf } from "../access/caller.ts";
import type { SubscribeCall } from "../subscribe-call.ts";

/** A call that names the identifier of an existing subscription. */
interface ContinuingCall {
  readonly call: SubscribeCall;
  readonly caller: Caller;
}

/** The change that subscribing again makes. It resumes a suspended subscription, but not one that an operator paused. @throws BrokerError 200001. */
export function toChange(existing: CallbackSubscription, { call, caller }: ContinuingCall): CallbackChange {
  const { url, format } = call;
  const secret = isCurrent(existing, call) ? existing.delivery.secret : (call.secret ?? secretOf(existing, url));
  const options = changeOptions(existing.delivery.options, call.options ?? {});
  const adopted = existing.principal === undefined ? principalOf(caller) : {};
  return {
    delivery: { kind: "webhook", format, url, secret, ...(options && { options }) },
    state: existing.state === "paused" || existing.heldState === "paused" ? "paused" : "active",
    ...adopted,
  };
}

/** The owner of the subscriptions that a caller makes; empty if the caller has no principal. */
export function principalOf({ principal }: Caller): Pick<Subscription, "principal"> {
  const owner = ownerOf(principal);
  return owner === nobody ? {} : { principal: owner };
}

/** Whether the subscription already has all values of the change. */
export function isUnchanged({ delivery, state, principal }: CallbackSubscription, change: CallbackChange): boolean {
  const { format, url, secret, options } = change.delivery;
  const hasOwner = change.principal === undefined || change.principal === principal;
  return (
    hasOwner &&
    state === change.state &&
    delivery.format === format &&
    delivery.url === url &&
    delivery.secret === secret &&
    areSameOptions(delivery.options, options)
  );
}

/** Whether a call repeats the url and the subscription's current secret. Then a rotation of the secret continues. */
function isCurrent({ delivery }: CallbackSubscription, { url, secret }: SubscribeCall): boolean {
  return delivery.url === url && delivery.secret !== undefined && readSecrets(delivery.secret).current === secret;
}

/**
 * The secret of a subscription that continues without a new one. A secret belongs to its url: a caller who knows only the identifier must not get
 * signatures at another address. @throws BrokerError 200001 if the url stays and its secret cannot be decrypted.
 */
function secretOf({ delivery, state }: CallbackSubscription, url: string): string | undefined {
  if (delivery.url !== url) return undefined;
  if (state !== "locked") return delivery.secret;
  const details = 'pass "secret" again: the broker cannot decrypt the stored secret of this subscription';
  throw new BrokerError("parameterInvalid", { details });
}
