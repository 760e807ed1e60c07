import { BrokerError } from "@stele/wire";
import { expect, it } from "vitest";
import type { Caller } from "../../engine/access/caller.ts";
import type { Broker, NodeListing } from "../../engine/broker.ts";
import { testCaller } from "../../engine/testing/as-caller.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { createFakeBroker } from "../testing/fake-broker.ts";
import { SharedListing } from "./shared-listing.ts";

const empty: readonly NodeListing[] = [{ address: "node-a:1", subscriptions: [] }];

/** A listing whose reads end when the test says so. */
function listingOf(readings: readonly Promise<readonly NodeListing[]>[], overrides: Partial<Broker> = {}) {
  let begun = 0;
  const listSubscriptions = (): Promise<readonly NodeListing[]> => {
    begun += 1;
    return readings[begun - 1] ?? Promise.reject(new Error("one reading too many"));
  };
  const listing = new SharedListing({
    broker: createFakeBroker({ listSubscriptions, ...overrides }),
    nodeAddress: () => "own:1",
  });
  return { listing, begun: () => begun };
}

const toText = (pieces: readonly Buffer[]): string => Buffer.concat(pieces).toString();

it("makes one listing for all calls that came before it began, and another for later calls", async () => {
  const [first, second] = [createDeferred<readonly NodeListing[]>(), createDeferred<readonly NodeListing[]>()];
  const { listing, begun } = listingOf([first.promise, second.promise]);
  const early = [listing.read(testCaller), listing.read(testCaller)];
  await new Promise(setImmediate);
  const late = [listing.read(testCaller), listing.read(testCaller)];
  first.resolve(empty);
  for (const pieces of await Promise.all(early)) expect(toText(pieces)).toBe('{"node-a:1":{}}');
  second.resolve([{ address: undefined, subscriptions: [] }, ...empty]);
  for (const pieces of await Promise.all(late)) expect(toText(pieces)).toBe('{"own:1":{},"node-a:1":{}}');
  expect(begun()).toBe(2);
});

it("reports a failure, and makes the next listing", async () => {
  const { listing } = listingOf([Promise.reject(new Error("disk")), Promise.resolve([])]);
  await expect(listing.read(testCaller)).rejects.toThrow("disk");
  expect(toText(await listing.read(testCaller))).toBe("{}");
});

it("checks each caller's right, even if callers share the listing", async () => {
  const stranger = { ...testCaller, address: "10.0.0.1" };
  const authorize: Broker["authorize"] = (caller, action) => {
    if (caller === stranger) throw new BrokerError("accessDenied", { details: action });
  };
  const { listing, begun } = listingOf([Promise.resolve(empty)], { authorize });
  const [allowed, denied] = await Promise.allSettled([listing.read(testCaller), listing.read(stranger)]);
  expect(allowed.status).toBe("fulfilled");
  expect(denied).toMatchObject({ reason: { code: 100_702, message: "not allowed: administer" } });
  expect(begun()).toBe(1);
});

it("serves the other callers of a shared listing if one loses its right while it waits", async () => {
  const leaver = { ...testCaller, address: "10.0.0.1" };
  let hasLeft = false;
  const authorize: Broker["authorize"] = (caller) => {
    if (caller === leaver && hasLeft) throw new BrokerError("credentialRefused", { details: "the key is revoked" });
  };
  const listSubscriptions = async (caller: Caller): Promise<readonly NodeListing[]> => {
    authorize(caller, "administer");
    return empty;
  };
  const { listing } = listingOf([], { authorize, listSubscriptions });
  const both = [listing.read(leaver), listing.read(testCaller)];
  hasLeft = true;
  const [refused, served] = await Promise.allSettled(both);
  expect(refused).toMatchObject({ reason: { code: 100_701 } });
  expect(served?.status).toBe("fulfilled");
});
