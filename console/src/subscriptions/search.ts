import type { OrderTarget, Stele, SubscriptionSearch } from "@stele/client";
import { take, type Taken } from "../lib/take.ts";

/** Rows that a list shows. A narrower search finds the others. */
export const shownMax = 200;

type Subscriptions = ReturnType<Stele["admin"]["subscriptions"]>;
export type ListedSubscription = Subscriptions extends AsyncGenerator<infer Item> ? Item : never;

export const states = {
  active: "active",
  paused: "paused",
  suspended: "suspended",
  locked: "locked",
  damaged: "damaged",
};

export function readSearch(search: URLSearchParams): SubscriptionSearch {
  const lagMin = search.get("lagMin");
  return {
    state: search.get("state") ?? undefined,
    prefix: search.get("prefix") ?? undefined,
    host: search.get("host") ?? undefined,
    lagMin: lagMin === null ? undefined : Number(lagMin),
  };
}

/** The target of an order for all that a search finds. A search without conditions becomes `all`. */
export function toTarget(search: SubscriptionSearch): OrderTarget {
  return Object.values(search).every((value) => value === undefined) ? { all: true } : search;
}

/** A search in words: `subscriptions: paused, topic begins with orders`. */
export function describeSearch({ state, prefix, host, lagMin }: SubscriptionSearch): string {
  const parts = [
    state,
    prefix && `topic begins with ${prefix}`,
    host && `receiver at ${host}`,
    lagMin === undefined ? undefined : `at least ${lagMin} waiting`,
  ].filter((part) => part !== undefined && part !== "");
  return parts.length === 0 ? "all subscriptions" : `subscriptions: ${parts.join(", ")}`;
}

export function findSubscriptions(
  stele: Stele,
  search: SubscriptionSearch,
  signal: AbortSignal,
): Promise<Taken<ListedSubscription>> {
  return take(stele.admin.subscriptions(search, { signal, limit: shownMax + 1 }), shownMax);
}
