import { beforeEach, describe, expect, it } from "vitest";
import { type LogFields, silentLogger } from "../../lib/logger.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import {
  addressesMax,
  FailedLogIns,
  floodConnectionsMax,
  heldMs,
  heldPerAddressMax,
  toNetwork,
} from "./failed-log-ins.ts";

let clock: VirtualClock;
let lines: (LogFields | undefined)[];
let failed: FailedLogIns;
beforeEach(() => {
  clock = new VirtualClock();
  lines = [];
  failed = new FailedLogIns({ clock, logger: { ...silentLogger, info: (_, fields) => lines.push(fields) } });
});
/** Notes a failed log-in; returns undefined if the answer comes at once. */
const note = (address: string): Promise<boolean> | undefined => failed.note({ address, protocol: "MQTT" }, "wrong");
function noteMany(address: string, count: number): void {
  for (let index = 0; index < count; index += 1) void note(address);
}

it("answers 20 failed log-ins of an address at once, later ones after a second; each second allows one more at once", async () => {
  for (let count = 0; count < 20; count += 1) expect(note("10.0.0.1")).toBeUndefined();
  const held = note("10.0.0.1");
  let answered: boolean | undefined;
  void held?.then((isAnswered) => (answered = isAnswered));
  await clock.advance(heldMs - 1);
  expect(answered).toBeUndefined();
  await clock.advance(1);
  expect(answered).toBe(true);
  expect(note("10.0.0.1")).toBeUndefined();
  expect(note("10.0.0.1")).toBeInstanceOf(Promise);
});

it("delays no answer to another address", () => {
  noteMany("10.0.0.1", 50);
  expect(note("10.0.0.2")).toBeUndefined();
});

it("closes the connection if too many log-ins of the address wait", async () => {
  noteMany("10.0.0.1", 20 + heldPerAddressMax);
  expect(await note("10.0.0.1")).toBe(false);
});

it("closes the connection if too many log-ins of all addresses wait", async () => {
  for (let index = 0; index < 20; index += 1) noteMany(`10.0.1.${index}`, 20 + heldPerAddressMax);
  noteMany("10.0.0.1", 20);
  expect(await note("10.0.0.1")).toBe(false);
});

const mayConnect = (address: string | undefined): boolean => failed.mayConnect(() => address);

const countTaken = (tries: number): number =>
  Array.from({ length: tries }, () => mayConnect("10.0.0.1")).filter((isTaken) => isTaken).length;

describe("new connections", () => {
  it("are all accepted, without a look at their addresses, while no address floods", () => {
    noteMany("10.0.0.1", 20 + heldPerAddressMax - 1);
    for (let count = 0; count < 2 * floodConnectionsMax; count += 1) {
      expect(failed.mayConnect(() => expect.fail("nobody floods"))).toBe(true);
    }
  });

  it("are limited to 100 a second for a flooding address, and not limited for others", async () => {
    noteMany("10.0.0.1", 20 + heldPerAddressMax);
    expect(countTaken(10_000)).toBe(floodConnectionsMax);
    expect([mayConnect("10.0.0.2"), mayConnect(undefined)]).toEqual([true, true]);
    await clock.advance(heldMs / 2);
    expect(countTaken(10_000)).toBe((floodConnectionsMax * heldMs) / 2_000);
  });

  it("stay limited while they come faster than the limit, even if fewer log-ins wait", async () => {
    noteMany("10.0.0.1", 20 + heldPerAddressMax);
    expect(countTaken(1_000)).toBe(floodConnectionsMax);
    for (let time = 0; time < 5 * heldMs; time += heldMs / 2) {
      await clock.advance(heldMs / 2);
      expect(countTaken(1_000)).toBe((floodConnectionsMax * heldMs) / 2_000);
    }
  });

  it("are all accepted again after a second in which none was refused", async () => {
    noteMany("10.0.0.1", 20 + heldPerAddressMax);
    await clock.advance(heldMs - 1);
    countTaken(floodConnectionsMax + 1);
    await clock.advance(1);
    expect(countTaken(1_000)).toBe(0);
    await clock.advance(2 * heldMs);
    expect(countTaken(1_000)).toBe(1_000);
  });

  it("of one IPv6 /64 network count as those of one address", () => {
    noteMany("2001:db8:1:2::1", 20 + heldPerAddressMax);
    for (let count = 0; count < floodConnectionsMax; count += 1) mayConnect(`2001:db8:1:2::${count}`);
    expect([mayConnect("2001:db8:1:2::ffff"), mayConnect("2001:db8:1:3::1")]).toEqual([false, true]);
  });
});

it("counts log-ins of an IPv6 /64 network as of one address, but not those of loopback or IPv4 addresses", () => {
  for (let host = 1; host <= 20; host += 1) void note(`2001:db8:1:2::${host}`);
  expect(note("2001:db8:1:2:3:4:5:6")).toBeInstanceOf(Promise);
  expect(note("2001:db8:1:3::1")).toBeUndefined();
  expect([note("::1"), note("::ffff:10.0.0.9")]).toEqual([undefined, undefined]);
});

it.each([
  ["2001:db8:1::1", "2001:db8:1:0::"],
  ["2001:db8:1::b:c:d", "2001:db8:1:0::"],
  ["2001:db8:1:0:a:b:c:d", "2001:db8:1:0::"],
  ["2001:db8::a:b:c:d", "2001:db8:0:0::"],
  ["2001:db8::3:a:b:c:d", "2001:db8:0:3::"],
  ["::3:a:b:c:d", "0:0:0:3::"],
  ["2001:db8::", "2001:db8:0:0::"],
  ["::1", "::1"],
  ["::", "::"],
  ["::ffff:10.0.0.9", "::ffff:10.0.0.9"],
  ["10.0.0.9", "10.0.0.9"],
  ["", ""],
])("the network of %j is %j", (address, network) => {
  expect(toNetwork(address)).toBe(network);
});

it("counts an IPv6 /64 whose last group is zero as one address", () => {
  for (let host = 1; host <= 20; host += 1) void note(`2001:db8:1::${host}:1`);
  expect(note("2001:db8:1::3:5:6")).toBeInstanceOf(Promise);
});

it("forgets the address whose last failed log-in is oldest when it knows too many addresses", () => {
  noteMany("10.0.0.1", 21);
  for (let index = 0; index < addressesMax; index += 1) void note(`host ${index}`);
  expect(note("10.0.0.1")).toBeUndefined();
});

it("logs 20 failures at once, and counts those that it omits", async () => {
  noteMany("10.0.0.1", 1_000);
  expect(lines).toHaveLength(20);
  expect(lines[0]).toEqual({ address: "10.0.0.1", protocol: "MQTT", reason: "wrong" });
  await clock.advance(1_000);
  void note("10.0.0.2");
  expect(lines.at(-1)).toMatchObject({ address: "10.0.0.2", omitted: 980 });
});
