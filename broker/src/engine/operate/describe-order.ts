import { toIsoTime } from "../../lib/iso-time.ts";
import type { DeliveryChange, PlaceOrder, SubscriptionOrder } from "./calls.ts";

/** Details of an order, for the log and the audit log. */
export interface OrderFacts {
  readonly place?: string;
  /** The fields of a change, never their values: these may be secrets. */
  readonly changed?: string;
}

/** Fields of a change whose names differ in the API. */
const apiNames: { readonly [Name in keyof DeliveryChange]?: string } = {
  form: "format",
  batchEvents: "batch",
  rotationMs: "rotationSeconds",
};

export function describeOrder(order: SubscriptionOrder): OrderFacts {
  if (order.kind === "replay") return { place: toText(order.from) };
  if (order.kind === "skip") return { place: order.to === undefined ? "the next event" : toText(order.to) };
  return order.kind === "change" ? { changed: listChanged(order.change) } : {};
}

function toText(place: PlaceOrder): string {
  if (typeof place === "string") return place;
  return "sequence" in place ? `sequence ${place.sequence}` : toIsoTime(place.time);
}

function listChanged(change: DeliveryChange): string {
  // The cast is safe: `name` is a key of the object.
  const named = Object.entries(change).flatMap(([name, value]) =>
    value === undefined ? [] : [name as keyof DeliveryChange],
  );
  return named.map((name) => apiNames[name] ?? name).join(", ");
}
