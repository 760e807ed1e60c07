import { expect, it } from "vitest";
import { toPosition } from "../../domain/position.ts";
import type { CallbackSubscription } from "../../domain/subscription.ts";
import { FurthestBehind, lagSubscriptionsMax } from "./furthest-behind.ts";

/** A subscription that waits at a block. */
function waitingAt(block: number, filter: string) {
  const position = toPosition(block, 0);
  return { subscription: { filter, cursor: position } as CallbackSubscription, position }; // FurthestBehind reads no other field.
}

it("keeps only the 100 subscriptions that wait for the oldest events, in whatever order they are added", () => {
  const furthest = new FurthestBehind();
  const count = 5 * lagSubscriptionsMax;
  for (let index = 0; index < count; index += 1) {
    const block = (index * 7) % count; // Every block once, out of order.
    furthest.add(waitingAt(block, `topic ${block}`));
  }
  const expected = Array.from({ length: lagSubscriptionsMax }, (_, block) => `topic ${block}`);
  expect(furthest.list().map(({ subscription }) => subscription.filter)).toEqual(expected);
});

it("keeps only the subscription with the lowest cursor of each topic", () => {
  const furthest = new FurthestBehind();
  for (const block of [3, 2, 4]) furthest.add(waitingAt(block, "a"));
  expect(furthest.list()).toEqual([waitingAt(2, "a")]);
});
