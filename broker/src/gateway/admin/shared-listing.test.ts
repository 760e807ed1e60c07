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

const toText = (pieces: readonly Buffer[]): string => Buffer.concat(pieces).toString();

it("makes one listing for those who come before it begins, and another for those who come later", async () => {
  const [first, second] = [createDeferred<readonly NodeListing[]>(), createDeferred<readonly NodeListing[]>()];
  const { listing, begun } = listingOf([first.promise, second.promise]);
  const early = [listing.read(), listing.read()];
  await new Promise(setImmediate);
  const late = [listing.read(), listing.read()];
  first.resolve(empty);
  for (const pieces of await Promise.all(early)) expect(toText(pieces)).toBe('{"node-a:1":{}}');
  second.resolve([{ address: undefined, subscriptions: [] }, ...empty]);
  for (const pieces of await Promise.all(late)) expect(toText(pieces)).toBe('{"own:1":{},"node-a:1":{}}');
  expect(begun()).toBe(2);
});

it("tells those who wait of a failure, and makes the next one", async () => {
  const { listing } = listingOf([Promise.reject(new Error("disk")), Promise.resolve([])]);
  await expect(listing.read()).rejects.toThrow("disk");
  expect(toText(await listing.read())).toBe("{}");
});
