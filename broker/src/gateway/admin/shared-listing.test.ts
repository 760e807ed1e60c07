import { text } from "node:stream/consumers";
import { expect, it } from "vitest";
import type { NodeListing } from "../../engine/broker.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { SharedListing } from "./shared-listing.ts";

const empty: readonly NodeListing[] = [{ address: "node-a:1", subscriptions: [] }];

/** A listing whose readings end when they are told to. */
function listingOf(readings: readonly Promise<readonly NodeListing[]>[]) {
  let begun = 0;
  const listSubscriptions = (): Promise<readonly NodeListing[]> => {
    begun += 1;
    return readings[begun - 1] ?? Promise.reject(new Error("one reading too many"));
  };
  const listing = new SharedListing({ broker: { listSubscriptions }, nodeAddress: () => "own:1" });
  return { listing, begun: () => begun };
}

it("makes one listing for those who come before it begins, and another for those who come later", async () => {
  const [first, second] = [createDeferred<readonly NodeListing[]>(), createDeferred<readonly NodeListing[]>()];
  const { listing, begun } = listingOf([first.promise, second.promise]);
  const early = [listing.read(), listing.read()];
  await new Promise(setImmediate);
  const late = [listing.read(), listing.read()];
  first.resolve(empty);
  for (const { body } of await Promise.all(early)) expect(await text(body)).toBe('{"node-a:1":{}}');
  second.resolve([{ address: undefined, subscriptions: [] }, ...empty]);
  for (const { body, byteCount } of await Promise.all(late)) {
    expect(await text(body)).toBe('{"own:1":{},"node-a:1":{}}');
    expect(byteCount).toBe(26);
  }
  expect(begun()).toBe(2);
});

it("tells those who wait of a failure, and makes the next one", async () => {
  const { listing } = listingOf([Promise.reject(new Error("disk")), Promise.resolve([])]);
  await expect(listing.read()).rejects.toThrow("disk");
  const { body } = await listing.read();
  expect(await text(body)).toBe("{}");
});
