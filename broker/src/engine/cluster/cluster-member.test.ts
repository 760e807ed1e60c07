import { afterEach, expect, it } from "vitest";
import type { GroupId } from "../../domain/group-id.ts";
import type { NodeId } from "../../domain/node.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { type LogFields, type Logger, silentLogger } from "../../lib/logger.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Coordinator, Hint } from "../../ports/coordinator.ts";
import { createMemoryCluster } from "../../store/memory/memory-cluster.ts";
import { defaultEngineLimits } from "../limits.ts";
import { NodeGate } from "../testing/node-gate.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { ClusterMember } from "./cluster-member.ts";

const ttl = defaultEngineLimits.membershipMs;
const unaborted = new AbortController().signal;
const groups: GroupId[] = [];
let members: ClusterMember[] = [];
afterEach(async () => {
  await Promise.all(members.map((member) => member.stop(unaborted)));
  members = [];
  groups.length = 0;
});

/** A virtual clock, and a coordinator whose methods a test can replace. */
function setUp() {
  const clock = new VirtualClock();
  const { coordinator } = createMemoryCluster({ clock });
  return { clock, coordinator };
}

function start(
  { clock, coordinator }: { readonly clock: Clock; readonly coordinator: Coordinator },
  address = "a:1",
  logger: Logger = silentLogger,
): ClusterMember {
  let count = members.length * 100;
  const uuid = (): string => `00000000-0000-4000-8000-${String((count += 1)).padStart(12, "0")}`;
  const member = new ClusterMember({
    onMembershipEnded: () => undefined,
    coordinator,
    address,
    clock,
    randomness: { fraction: () => 0.5, uuid, bytes: (count) => new Uint8Array(count) },
    logger,
    limits: defaultEngineLimits,
    readyGroups: () => groups,
    writeRest: async () => {},
  });
  members.push(member);
  member.start();
  return member;
}

const failing = (): Promise<never> => Promise.reject(new Error("no connection"));
const hanging = (): Promise<never> => new Promise(() => {});

it("joins, renews its membership while it runs, and is listed", async () => {
  const world = setUp();
  const member = start(world);
  const membership = await member.membership(unaborted);
  await world.clock.advance(20 * ttl);
  expect(membership?.isLive()).toBe(true);
  expect(await world.coordinator.listNodes()).toMatchObject([{ id: membership?.nodeId, address: "a:1" }]);
  expect(member.failure).toBeUndefined();
});

it("frees its address at once when it stops", async () => {
  const world = setUp();
  const first = start(world);
  await first.membership(unaborted);
  await first.stop(unaborted);
  expect(await world.coordinator.listNodes()).toEqual([]);
  const second = start(world);
  await world.clock.settle();
  expect(second.failure).toBeUndefined();
  await world.clock.advance(2 * ttl);
  expect(first.failure).toBeDefined();
});

it("stops by its deadline if the coordinator does not answer", async () => {
  const world = setUp();
  const member = start(world);
  await member.membership(unaborted);
  world.coordinator.leave = hanging;
  const deadline = new AbortController();
  const stopped = member.stop(deadline.signal);
  deadline.abort();
  await stopped;
});

it.each([
  ["fail", failing],
  ["hang", hanging],
])("ends its membership by itself when renewals %s, and joins again with a new identifier", async (_, renew) => {
  const world = setUp();
  const working = world.coordinator.renew.bind(world.coordinator);
  const member = start(world);
  const membership = await member.membership(unaborted);
  await world.clock.settle();
  world.coordinator.renew = renew;
  let endedAt = 0;
  const since = world.clock.now();
  membership?.ended.addEventListener("abort", () => void (endedAt = world.clock.now() - since));
  await world.clock.advance(ttl);
  expect(endedAt).toBe((ttl * 5) / 6);
  world.coordinator.renew = working;
  await world.clock.advance(2 * ttl);
  const next = await member.membership(unaborted);
  expect(next?.nodeId).not.toBe(membership?.nodeId);
  expect(await world.coordinator.listNodes()).toMatchObject([{ id: next?.nodeId }]);
});

it("joins again at once after renewals that took effect without an answer; a late renewal does not revive the old membership", async () => {
  const world = setUp();
  const working = world.coordinator.renew.bind(world.coordinator);
  const late: (() => Promise<boolean>)[] = [];
  const member = start(world);
  const membership = await member.membership(unaborted);
  world.coordinator.renew = (...call) => {
    if (call[0] === membership?.nodeId) late.push(() => working(...call));
    return working(...call).then(hanging);
  };
  await world.clock.advance(ttl - 10);
  world.coordinator.renew = working;
  expect(membership?.isLive()).toBe(false);
  const next = await member.membership(unaborted);
  expect(late.length).toBeGreaterThan(0);
  for (const renew of late) expect(await renew()).toBe(false);
  expect(await world.coordinator.listNodes()).toMatchObject([{ id: next?.nodeId }]);
});

it("replaces a join that took effect without an answer, although the row of that join has not expired", async () => {
  const world = setUp();
  const working = world.coordinator.join.bind(world.coordinator);
  const answered = createDeferred<void>();
  world.coordinator.join = async (...call) => {
    const outcome = await working(...call);
    await answered.promise;
    return outcome;
  };
  const member = start(world);
  await world.clock.advance(1);
  const first = (await world.coordinator.listNodes())[0]?.id ?? ("" as NodeId);
  await world.clock.advance(ttl / 2);
  await world.coordinator.renew(first, { lastsMs: 10 * ttl, groups }); // As if the server had hung and executed the join later.
  world.coordinator.join = working;
  await world.clock.advance(ttl);
  expect(member.failure).toBeUndefined();
  answered.resolve();
});

it("sends the next renewal while one hangs", async () => {
  const world = setUp();
  const working = world.coordinator.renew.bind(world.coordinator);
  const member = start(world);
  const membership = await member.membership(unaborted);
  await world.clock.settle();
  let calls = 0;
  world.coordinator.renew = (...call) => {
    calls += 1;
    return calls === 1 ? hanging() : working(...call);
  };
  await world.clock.advance(5 * ttl);
  expect(membership?.isLive()).toBe(true);
});

it("keeps the membership when the coordinator answers again just before the membership ends", async () => {
  const world = setUp();
  const working = world.coordinator.renew.bind(world.coordinator);
  const member = start(world);
  const membership = await member.membership(unaborted);
  await world.clock.advance(1);
  world.coordinator.renew = failing;
  await world.clock.advance((ttl * 3) / 4 - 100);
  world.coordinator.renew = working;
  await world.clock.advance(5 * ttl);
  expect(membership?.isLive()).toBe(true);
});

it("ends its membership and joins again if the coordinator does not know it", async () => {
  const world = setUp();
  const lines: string[] = [];
  const member = start(world, "a:1", recordingLogger(lines));
  const membership = await member.membership(unaborted);
  await world.coordinator.leave(membership?.nodeId ?? ("" as NodeId));
  await world.clock.advance(ttl / 3);
  expect(membership?.isLive()).toBe(false);
  expect((await member.membership(unaborted))?.nodeId).not.toBe(membership?.nodeId);
  expect(lines).toContain("warn membership ended, joining again: the coordinator does not know this member");
});

it("waits for the address of a killed process without a warning", async () => {
  const world = setUp();
  await world.coordinator.join({ id: "killed" as NodeId, address: "a:1" }, ttl); // Any string will do.
  const lines: string[] = [];
  const member = start(world, "a:1", recordingLogger(lines));
  await world.clock.advance(ttl - 1);
  expect(member.failure).toContain("it is joining");
  await world.clock.advance(ttl / 3);
  expect(member.failure).toBeUndefined();
  expect(lines.filter((line) => line.startsWith("warn"))).toEqual([]);
});

it("reports why it is not a member as soon as its membership has ended", async () => {
  const world = setUp();
  const member = start(world);
  const membership = await member.membership(unaborted);
  world.coordinator.renew = failing;
  const joining = createDeferred<"taken">();
  world.coordinator.join = () => joining.promise;
  await world.clock.advance((ttl * 5) / 6);
  const { failure } = member;
  joining.resolve("taken");
  expect(membership?.isLive()).toBe(false);
  expect(failure).toBe("this node has not joined the others: no connection");
});

it("logs once that another node expired or left, with the number of its subscriptions and leases", async () => {
  const world = setUp();
  const { coordinator, clock } = world;
  const lines: unknown[] = [];
  const note =
    (level: string) =>
    (message: string, fields: LogFields = {}) =>
      void (message.startsWith("another") && lines.push([level, message, fields]));
  const logger: Logger = { ...silentLogger, info: note("info"), warn: note("warn") };
  const { nodeId } = (await start(world, "a:1", logger).membership(unaborted)) ?? {};
  await clock.settle();
  const [dead, leaving] = ["dead" as NodeId, "leaving" as NodeId]; // Any string will do.
  await coordinator.join({ id: dead, address: "b:1" }, ttl);
  await coordinator.join({ id: leaving, address: "c:1" }, 10 * ttl);
  await coordinator.takeLease("1" as GroupId, dead); // Any string will do.
  await clock.advance(2 * ttl);
  for (let call = 0; call < 2; call += 1) await coordinator.balance(nodeId ?? leaving);
  await coordinator.leave(leaving);
  await clock.settle();
  expect(lines).toEqual([
    ["warn", "another node expired", { nodeId: dead, address: "b:1", subscriptions: 0, groups: 1 }],
    ["info", "another node left", { nodeId: leaving, address: "c:1", subscriptions: 0, groups: 0 }],
  ]);
});

it("logs once that another live node has the same address", async () => {
  const world = setUp();
  await start(world).membership(unaborted);
  const lines: string[] = [];
  const member = start(world, "a:1", recordingLogger(lines));
  await world.clock.advance(10 * ttl);
  expect(member.failure).toMatch(/another node that is up has the address a:1/);
  expect(lines.filter((line) => line.startsWith("warn"))).toEqual(["warn node not joined, trying again"]);
});

it("joins again if the answer to its join comes after the membership has expired", async () => {
  const world = setUp();
  const gate = new NodeGate(world.clock, () => 0);
  const coordinator = gate.wrap(world.coordinator, { isShared: true });
  gate.halt();
  const member = start({ clock: gate.clock, coordinator });
  const waiting = new AbortController();
  const answer = member.membership(waiting.signal);
  await world.clock.advance(3 * ttl);
  gate.resume();
  await world.clock.advance(ttl);
  expect((await answer)?.isLive()).toBe(true);
  expect(member.failure).toBeUndefined();
  waiting.abort();
});

it("leaves and joins again if the answer to its join comes just before the membership expires", async () => {
  const world = setUp();
  const working = world.coordinator.join.bind(world.coordinator);
  let isLate = true;
  world.coordinator.join = async (...call) => {
    const outcome = await working(...call);
    if (isLate) await new Promise<void>((resolve) => void world.clock.after((ttl * 11) / 12, resolve));
    return outcome;
  };
  const member = start(world);
  const early = member.membership(unaborted);
  await world.clock.advance((ttl * 11) / 12);
  const late = member.membership(unaborted);
  expect(member.failure).toContain("does not answer in time");
  expect(await world.coordinator.listNodes()).toEqual([]);
  isLate = false;
  await world.clock.advance(ttl);
  expect(member.failure).toBeUndefined();
  const [membership] = await world.coordinator.listNodes();
  expect((await Promise.all([early, late])).map((one) => one?.nodeId)).toEqual([membership?.id, membership?.id]);
});

it("undoes a join in progress before stop returns", async () => {
  const world = setUp();
  const { join, leave } = world.coordinator;
  const answered = createDeferred<void>();
  world.coordinator.join = async (...call) => {
    const outcome = await join.apply(world.coordinator, call);
    await answered.promise;
    return outcome;
  };
  world.coordinator.leave = async (nodeId) => {
    await new Promise<void>((resolve) => void world.clock.after(10, resolve));
    return leave.call(world.coordinator, nodeId);
  };
  const member = start(world);
  await world.clock.settle();
  const stopped = member.stop(unaborted).then(() => world.coordinator.listNodes());
  answered.resolve();
  await world.clock.advance(10);
  expect(await stopped).toEqual([]);
});

it("does not log a join that fails while the node stops", async () => {
  const world = setUp();
  const answer = createDeferred<never>();
  world.coordinator.join = () => answer.promise;
  const lines: string[] = [];
  const member = start(world, "a:1", recordingLogger(lines));
  await world.clock.settle(); // The join is in progress.
  const stopped = member.stop(unaborted);
  answer.reject(new Error("no connection"));
  await stopped;
  expect(lines).toEqual([]);
});

it("renew reports the ready groups at once; after drain it reports none", async () => {
  const world = setUp();
  const reported: (readonly GroupId[])[] = [];
  const working = world.coordinator.renew.bind(world.coordinator);
  world.coordinator.renew = (nodeId, what) => {
    reported.push([...what.groups]);
    return working(nodeId, what);
  };
  const member = start(world);
  await member.membership(unaborted);
  groups.push("1" as GroupId); // Any string will do.
  void member.renew();
  expect(reported.at(-1)).toEqual(["1"]);
  void member.drain();
  expect(reported.at(-1)).toEqual([]);
  await world.clock.advance(ttl);
  expect(reported.at(-1)).toEqual([]);
});

it("passes hints to listeners, a nodes hint after its own join, and listens again after a failure", async () => {
  const world = setUp();
  const working = world.coordinator.listen.bind(world.coordinator);
  world.coordinator.listen = failing;
  const hints: Hint[] = [];
  const member = start(world);
  const unlisten = member.onHint((hint) => void hints.push(hint));
  await member.membership(unaborted);
  expect(hints).toEqual([{ kind: "nodes" }]);
  world.coordinator.listen = working;
  await world.clock.advance(ttl);
  hints.length = 0;
  const other = start(world, "b:1");
  await other.membership(unaborted);
  await world.clock.settle();
  expect(hints).toContainEqual({ kind: "nodes" });
  hints.length = 0;
  unlisten();
  await other.stop(unaborted);
  await world.clock.settle();
  expect(hints).toEqual([]);
});

it("membership waits until the caller's signal aborts, and then returns undefined", async () => {
  const world = setUp();
  world.coordinator.join = failing;
  const member = start(world);
  const waiting = new AbortController();
  const answer = member.membership(waiting.signal);
  await world.clock.advance(ttl);
  expect(member.failure).toContain("no connection");
  waiting.abort();
  expect(await answer).toBeUndefined();
});

function recordingLogger(lines: string[]): Logger {
  const write = (level: string) => (message: string, fields?: LogFields) => {
    const { reason } = fields ?? {};
    lines.push(`${level} ${message}${typeof reason === "string" ? `: ${reason}` : ""}`);
  };
  const logger: Logger = {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
    child: () => logger,
  };
  return logger;
}
