import { isUnsafeToRepeat, type OrderTarget, type Place, type Stele } from "@stele/client";
import { describeError, isUnknown } from "../broker/describe-error.ts";
import { formatCounted } from "../lib/format.ts";

export const orderNames = ["pause", "resume", "retry", "skip", "replay"] as const;
export type ConsoleOrder = (typeof orderNames)[number];

/** Orders that take a place among the events. */
export type PlaceOrder = "skip" | "replay";

export function isPlaceOrder(name: ConsoleOrder): name is PlaceOrder {
  return name === "skip" || name === "replay";
}

export const orderTitles: Readonly<Record<ConsoleOrder, string>> = {
  pause: "Pause",
  resume: "Resume",
  retry: "Retry now",
  skip: "Skip",
  replay: "Replay",
};

/** The orders that a subscription accepts in a state; none for an unknown state. */
export function ordersFor(state: string): readonly ConsoleOrder[] {
  switch (state) {
    case "active":
      return ["pause", "retry", "skip", "replay"];
    case "paused":
      return ["resume", "skip", "replay"];
    case "suspended":
      return ["resume", "retry", "pause", "skip", "replay"];
    default:
      return [];
  }
}

export interface OrderOutcome {
  readonly subscriptions: number;
  readonly events: number;
  /** Why the broker refused the order for some subscriptions, each reason once. */
  readonly refusals: readonly string[];
  /** Why the broker does not know whether the order has taken effect for some subscriptions, each reason once. */
  readonly doubts: readonly string[];
}

export interface GivenOrder {
  readonly name: ConsoleOrder;
  readonly target: OrderTarget;
  readonly dryRun: boolean;
  /** Where a skip ends, or a replay begins. */
  readonly place?: Place | undefined;
}

/** Gives an order, and adds up its results. */
export async function giveOrder(stele: Stele, order: GivenOrder, signal?: AbortSignal): Promise<OrderOutcome> {
  const { name, target, dryRun, place } = order;
  const [refusals, doubts] = [new Set<string>(), new Set<string>()];
  let [subscriptions, events] = [0, 0];
  for await (const { error, wasRefused, ...result } of stele.admin.order(
    { name, dryRun, ...toBounds(name, place) },
    target,
    {
      signal,
    },
  )) {
    if (error === undefined) {
      subscriptions += 1;
      events += result.events;
    } else (wasRefused === true ? refusals : doubts).add(error.detail);
  }
  return { subscriptions, events, refusals: [...refusals], doubts: [...doubts] };
}

function toBounds(name: ConsoleOrder, place: Place | undefined) {
  if (name === "skip") return { to: place };
  return name === "replay" ? { from: place } : {};
}

/** The effect of an order in words, shown before a person gives it. */
export function describeOrder(name: ConsoleOrder, events: number): string {
  if (isPlaceOrder(name)) return `${formatCounted(events, "event")}${effects[name]}`;
  const waiting = formatCounted(events, "event");
  const verb = events === 1 ? "waits" : "wait";
  return `${waiting} ${verb}${effects[name]}`;
}

/** The outcome of an order in words. The order may affect other events than the preview counted, because events come and are acknowledged in between. */
export function describeOutcome(name: ConsoleOrder, { subscriptions, events, refusals, doubts }: OrderOutcome): string {
  return [
    `${orderTitles[name]}: done for ${formatCounted(subscriptions, "subscription")}.`,
    ...(isPlaceOrder(name)
      ? [`${formatCounted(events, "event")} ${name === "skip" ? "skipped" : "to deliver again"}.`]
      : []),
    ...refusals.map((reason) => `Refused for some: ${reason}.`),
    ...doubts.map((reason) => `May have taken effect for some: ${reason}.`),
  ].join(" ");
}

/** The failure of an order in words. */
export function describeFailure(
  { name, place }: { readonly name: ConsoleOrder; readonly place: Place | undefined },
  error: unknown,
): string {
  const advice = isUnsafeToRepeat({ name, ...toBounds(name, place) })
    ? ": look at the subscription before you give it again"
    : "";
  const doubt = `The order may have taken effect${advice}.`;
  return `${describeError(error)}.${isUnknown(error) ? ` ${doubt}` : ""}`;
}

const effects: Readonly<Record<ConsoleOrder, string>> = {
  pause:
    ", and will be held with all later ones until somebody resumes. The receiver gets nothing meanwhile, and nothing is lost.",
  resume: ", and will be delivered in order, from the first that was not acknowledged.",
  retry: ". The next attempt starts at once, instead of after its pause.",
  skip: " will never be delivered to this receiver. The chain keeps skipped events: a replay can still deliver them.",
  replay: " will be delivered again, in order. The receiver sees the same eventIds as before.",
};
