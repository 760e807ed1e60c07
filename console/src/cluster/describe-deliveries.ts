import { formatCount, formatCounted, formatDuration } from "../lib/format.ts";
import type { Group } from "./read-cluster.ts";

const secondMs = 1000;

/** How the callbacks of a group fare, and on which nodes. */
export function describeDeliveries({
  subscriptions,
  held,
  lag,
}: Pick<Group, "subscriptions" | "held" | "lag">): Readonly<Record<string, string | undefined>> {
  return {
    "Subscriptions delivered here": subscriptions === undefined ? undefined : formatCount(subscriptions),
    "Lag of the slowest one here": lag && describeLag(lag),
    "Not delivered, on all nodes":
      held &&
      `${formatCount(held.paused)} paused, ${formatCount(held.suspended)} suspended, ${formatCount(held.locked ?? 0)} locked`,
  };
}

function describeLag({ events, seconds }: NonNullable<Group["lag"]>): string {
  const age = seconds === undefined ? "" : `, the oldest has waited ${formatDuration(seconds * secondMs)}`;
  return events === 0 ? "none" : `${formatCounted(events, "event")}${age}`;
}
