import { getEventListeners } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { anonymous, type Caller, toOwnerId } from "../../../engine/access/caller.ts";
import { RuleSet } from "../../../engine/access/rule-set.ts";
import { createDeferred } from "../../../lib/deferred.ts";
import { rpcBatchRunningMax, rpcRunningMax, rpcWholeBytesMax } from "../../limits.ts";
import { BatchRun } from "./batch-run.ts";
import { RunningMembers } from "./running-members.ts";
import { Slices } from "./slices.ts";

const caller = {
  principal: anonymous,
  address: undefined,
  protocol: "JSON-RPC",
  signal: new AbortController().signal,
} as const;

/** Batches of one endpoint whose members run until the test ends them. */
class World {
  readonly shared = { slices: new Slices(), runningMembers: new RunningMembers(), caller, bodyBytes: rpcWholeBytesMax };

  start(size: number, bodyBytes = rpcWholeBytesMax, own: Caller = caller) {
    const ends: (() => void)[] = [];
    const answer = (member: unknown, onAnswered: (response: unknown) => void) => {
      ends.push(() => onAnswered(member));
      return undefined;
    };
    const members: unknown[] = Array.from({ length: size }, (_, index) => index);
    const answered = new BatchRun({ ...this.shared, caller: own, bodyBytes, members, answer }).run();
    return { ends, answered, members };
  }
}

/** Waits until the batches have started all the members that they may start now. */
async function settled(batches: readonly { readonly ends: readonly unknown[] }[]): Promise<readonly number[]> {
  const count = (): readonly number[] => batches.map(({ ends }) => ends.length);
  for (let before = ""; ; before = String(count())) {
    for (let turn = 0; turn < 2 * batches.length; turn += 1) await nextTurn();
    if (before === String(count())) return count();
  }
}

it("starts all members that need no promise at once, and returns the responses in the order of the members", async () => {
  const batch = new World().start(1000);
  expect(await settled([batch])).toEqual([1000]);
  for (const end of batch.ends.toReversed()) end();
  expect(await batch.answered).toEqual(Array.from({ length: 1000 }, (_, index) => index));
});

it("starts a bounded number of members of a long batch", async () => {
  const batch = new World().start(1000, rpcWholeBytesMax + 1);
  expect(await settled([batch])).toEqual([rpcBatchRunningMax]);
});

it("frees each member of a batch when it starts the member", async () => {
  const batch = new World().start(1000, rpcWholeBytesMax + 1);
  await settled([batch]);
  const kept = batch.members.flatMap((member) => member ?? []);
  expect(kept).toEqual(Array.from({ length: 1000 - rpcBatchRunningMax }, (_, index) => rpcBatchRunningMax + index));
});

it("frees the members that wait, and the responses, at once when the connection ends", async () => {
  const left = new AbortController();
  const batch = new World().start(1000, rpcWholeBytesMax + 1, { ...caller, signal: left.signal });
  await settled([batch]);
  batch.ends.shift()?.();
  await settled([batch]);
  left.abort();
  expect(batch.members).toEqual([]);
  const running = batch.ends.splice(0);
  for (const end of running) end();
  expect((await batch.answered).flatMap((response) => response ?? [])).toEqual(running.map((_, index) => index + 1));
  expect(batch.ends).toEqual([]);
});

it("lets each batch run only its guaranteed number of members while too many members run", async () => {
  const world = new World();
  const first = world.start(1000);
  await settled([first]);
  const others = [];
  for (let count = 0; count < 3; count += 1) {
    others.push(world.start(1000));
    await settled(others);
  }
  const last = others.at(-1);
  expect(await settled(others)).toEqual([1000, rpcBatchRunningMax, rpcBatchRunningMax]);
  expect(2 * 1000 + rpcBatchRunningMax).toBeGreaterThan(rpcRunningMax);

  for (const end of first.ends) end();
  await first.answered;
  last?.ends.shift()?.();
  expect(await settled(others)).toEqual([1000, rpcBatchRunningMax, rpcRunningMax - 1000 - rpcBatchRunningMax]);
});

/** A connection of a principal; without a name, of somebody without a credential. */
function createCaller(name?: string): Caller {
  if (name === undefined) return { ...caller };
  const [id, rules] = [toOwnerId(name, undefined), new RuleSet([])];
  const principal = { kind: "known", id, tenant: undefined, rules, expiresAt: undefined, keyId: undefined } as const;
  return { ...caller, principal };
}

/** Sends a batch of one member for each caller, at once. Returns the places of the callers in the order in which their batches started. */
async function startOrder(callers: readonly Caller[]): Promise<readonly unknown[]> {
  const { shared } = new World();
  const started: unknown[] = [];
  const answer = (member: unknown, onAnswered: (response: unknown) => void) => {
    started.push(member);
    onAnswered(member);
    return undefined;
  };
  await Promise.all(
    callers.map((own, place) => new BatchRun({ ...shared, caller: own, members: [place], answer }).run()),
  );
  return started;
}

it("lets principals take turns, however many connections each has", async () => {
  const callers = ["greedy", "greedy", "greedy", "modest", undefined].map(createCaller);
  expect(await startOrder(callers)).toEqual([0, 3, 4, 1, 2]);
});

it.each([undefined, "one"])(
  "lets the connections of one principal (%s) take turns, however many batches each sends",
  async (name) => {
    const [many, one] = [createCaller(name), createCaller(name)];
    expect(await startOrder([many, many, many, one])).toEqual([0, 3, 1, 2]);
  },
);

it("ends the waiting batches of a connection at once when it ends, and gives their turns to others", async () => {
  const left = new AbortController();
  const gone = { ...createCaller("gone"), signal: left.signal };
  const events: string[] = [];
  const run = async (own: Caller, name: string): Promise<void> => {
    const answer = (_member: unknown, onAnswered: (response: unknown) => void) => {
      events.push(`${name} starts`);
      onAnswered(undefined);
      return undefined;
    };
    await new BatchRun({ ...shared, caller: own, members: [0], answer }).run();
    events.push(`${name} ends`);
  };
  const { shared } = new World();
  const runs = [gone, gone, createCaller("other")].map((own) => run(own, own === gone ? "gone" : "other"));
  left.abort();
  runs.push(run(gone, "late"));
  await nextTurn();
  expect(events).toEqual(["late ends", "gone ends", "gone ends", "other starts", "other ends"]);
  await Promise.all(runs);
});

const numbers = Array.from({ length: 600 }, (_, index) => index);

it("runs a bounded number of members with promises at once", async () => {
  let running = 0;
  let runningMost = 0;
  const reached = createDeferred<void>();
  const answer = async (member: unknown, onAnswered: (response: unknown) => void) => {
    runningMost = Math.max(runningMost, (running += 1));
    if (running === rpcBatchRunningMax) reached.resolve();
    await reached.promise;
    running -= 1;
    onAnswered(member);
  };
  expect(await new BatchRun({ ...new World().shared, members: [...numbers], answer }).run()).toEqual(numbers);
  expect(runningMost).toBe(rpcBatchRunningMax);
});

it("throws the error of a member once all have ended", async () => {
  let ended = 0;
  const answer = async (member: unknown) => {
    await nextTurn();
    ended += 1;
    throw new Error(`member ${String(member)}`);
  };
  const run = new BatchRun({ ...new World().shared, members: [...numbers], answer }).run();
  await expect(run).rejects.toThrow("member 0");
  expect(ended).toBe(600);
});

const refuse = (): never => {
  throw new Error("not started");
};

it("leaves no listener at its caller's signal if a member cannot be started", async () => {
  const { signal } = new AbortController();
  const run = new BatchRun({
    ...new World().shared,
    caller: { ...caller, signal },
    members: [0],
    answer: refuse,
  }).run();
  await expect(run).rejects.toThrow("not started");
  expect(getEventListeners(signal, "abort")).toEqual([]);
});
