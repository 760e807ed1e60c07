import { beforeEach, expect, it } from "vitest";
import { TimeSlices } from "../../lib/time-slices.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import type { Access } from "../access/access.ts";
import type { Owner } from "../access/caller.ts";
import type { Connected } from "./connected.ts";
import { ConnectedOwners } from "./connected-owners.ts";

const connections = 1_000;
const owner = "one" as Owner;

let turns: (() => void)[];
let now: number;
let isAdmitted: boolean;
let reading: number;
let ended: string[];
let owners: ConnectedOwners;
let all: readonly Connected[];
beforeEach(() => {
  [turns, now, isAdmitted, reading, ended] = [[], 0, true, connections, []];
  const slices = new TimeSlices({ monotonic: () => now, soon: (action) => void turns.push(action) });
  owners = new ConnectedOwners({
    access: { isAdmitted: () => isAdmitted } as unknown as Access, // The only method that ConnectedOwners calls for MQTT.
    clock: new VirtualClock(),
    limits: { willBytesMax: 0 },
    slices,
  });
  all = Array.from({ length: connections }, () => add());
});

/** A connection whose end takes 0.1 ms. */
function add(): Connected {
  let isReading = true;
  const disconnect = (): void => {
    if (isReading) reading -= 1;
    isReading = false;
  };
  const known = {
    protocol: "MQTT",
    principal: { kind: "known", id: owner },
    session: { disconnect, memberships: { checkRights: () => {} } },
    peer: {
      ended: (why: string) => {
        now += 0.1;
        ended.push(why);
        owners.delete(known);
      },
    },
  } as unknown as Connected; // All fields that ConnectedOwners reads.
  owners.add(known);
  return known;
}

/** Runs a turn of the event loop. Returns how many connections ended in it. */
async function turn(): Promise<number> {
  const before = ended.length;
  for (const action of turns.splice(0)) {
    action();
    for (let step = 0; step < 4; step += 1) await Promise.resolve();
  }
  return ended.length - before;
}

it("stops all sessions of a revoked key in one turn, and ends their connections in slices", async () => {
  isAdmitted = false;
  owners.check(new Set([owner]));
  expect(reading).toBe(0);
  const ends = [ended.length];
  while (turns.length > 0) ends.push(await turn());
  expect(ended).toEqual(Array(connections).fill("refused"));
  expect(Math.max(...ends)).toBeLessThan(connections / 10);
});

it("ends no connection that left while others ended", async () => {
  isAdmitted = false;
  owners.check(new Set([owner]));
  const isLeft = ended.length < connections;
  for (const known of all) owners.delete(known);
  while (turns.length > 0) await turn();
  expect(isLeft).toBe(true);
  expect(ended.length).toBeLessThan(connections / 10);
});

it("checks the filters of a tail again only when the rules of its principal have changed", () => {
  let rules = {};
  let checks = 0;
  let isCovered = true;
  const receiverFor = () => () => {
    checks += 1;
    return isCovered;
  };
  const access = { isAdmitted: () => true, rulesFor: () => rules, receiverFor } as unknown as Access; // All that ConnectedOwners calls for tails.
  const slices = new TimeSlices({ monotonic: () => 0, soon: () => {} });
  const tails = new ConnectedOwners({ access, clock: new VirtualClock(), limits: { willBytesMax: 0 }, slices });
  const known = {
    protocol: "Tail",
    principal: { kind: "known", id: owner },
    group: { id: "1" },
    session: { filterSet: { all: [{ filter: "a" }] }, disconnect: () => {}, memberships: { checkRights: () => {} } },
    peer: { ended: (why: string) => ended.push(why) },
  } as unknown as Connected; // All fields that ConnectedOwners reads of a tail.
  tails.add(known);
  for (let times = 0; times < 3; times += 1) tails.check("all");
  expect([checks, ended]).toEqual([1, []]);
  rules = {};
  tails.check("all");
  expect([checks, ended]).toEqual([2, []]);
  rules = {};
  isCovered = false;
  tails.check("all");
  expect([checks, ended]).toEqual([3, ["refused"]]);
});
