import type { OrderName, OrderResultBody } from "@stele/wire";
import type { Open } from "./lib/open.ts";
import { isRefusal } from "./stele-error.ts";

/** A place in a subscription: `OFFSET_FIRST`, `OFFSET_LAST`, an eventId, a time (ISO 8601), or a sequence if the subscription has one topic. */
export type Place = string | number;

export interface Order {
  readonly name: OrderName;
  /** For `skip`: the last event to skip. If left out, the order skips the next event. */
  readonly to?: Place | undefined;
  /** For `replay`: the first event to deliver again. */
  readonly from?: Place | undefined;
  /** For `redeliver` and `discard`: the event of one dead letter. If left out, the order is for all dead letters. */
  readonly eventId?: string | undefined;
  /** If true, the order changes nothing; its result counts the events that the order would affect. */
  readonly dryRun?: boolean | undefined;
}

/** Milliseconds since the epoch, or the beginning of a time of ISO 8601. No eventId has these forms. */
const time = /^\d{12,14}$|^\d{4}-\d\d-\d\d/;

/**
 * Whether a repeat of the order could skip further events. True for a skip without a place, to the newest event, or to a time: the time may be later than the
 * newest event. Any other order leads to the same place again.
 */
export function isUnsafeToRepeat({ name, to }: Pick<Order, "name" | "to">): boolean {
  if (name !== "skip" || typeof to === "number") return false;
  return to === undefined || to === "OFFSET_LAST" || time.test(to);
}

/** What an order did to one subscription. */
export type OrderResult = Open<OrderResultBody> & {
  /** Only with an `error`: whether the order surely left the subscription as it was. */
  readonly wasRefused?: boolean;
};

/** The result in an answer. `isDoubtful`: whether an earlier try of the same request may have taken effect; then a refusal may be due to that try. */
export function toOrderResult(
  body: Open<OrderResultBody>,
  { dryRun = false, isDoubtful }: { readonly dryRun: boolean | undefined; readonly isDoubtful: boolean },
): OrderResult {
  if (body.error === undefined) return body;
  return { ...body, wasRefused: dryRun || (!isDoubtful && isRefusal(body.error.code)) };
}

export function toOrderBody({ name, to, from, eventId }: Order): object {
  if (name === "redeliver" || name === "discard") return eventId === undefined ? { all: true } : { eventId };
  return { ...(to === undefined ? {} : { to }), ...(from === undefined ? {} : { from }) };
}
