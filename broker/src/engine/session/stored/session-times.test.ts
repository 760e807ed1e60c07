import { expect, it } from "vitest";
import { defaultGroupId } from "../../../domain/group-id.ts";
import { createDeferred } from "../../../lib/deferred.ts";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { createMemoryStore } from "../../../store/memory/memory-store.ts";
import { withSessionCalls } from "../../testing/with-session-calls.ts";
import { SessionTimes } from "./session-times.ts";

it("loses no time when it is advanced more often than once a millisecond", async () => {
  const store = createMemoryStore();
  let now = 0;
  const clock = Object.assign(new VirtualClock(), { monotonic: () => now });
  const times = new SessionTimes({ store, clock, isKeeper: () => true, isShared: false, hasKeys: () => false });
  for (; now < 1_000; now += 0.75) await times.advance(defaultGroupId);
  expect(await times.find(defaultGroupId)).toBe(999);
});

/** A node that keeps the session time of a shared store. The store answers each write of the time only when {@link run} lets it. */
class Keeper {
  readonly #memory = createMemoryStore();
  #now = 0;
  #answering = createDeferred<void>();
  keeps = true;
  readonly times = new SessionTimes({
    store: withSessionCalls(this.#memory, {
      advanceSessionTime: async (...call) => {
        await this.#answering.promise;
        return this.#memory.sessions.advanceSessionTime(...call);
      },
    }),
    clock: Object.assign(new VirtualClock(), { monotonic: () => this.#now }),
    isKeeper: () => this.keeps,
    isShared: true,
    hasKeys: () => false,
  });

  /** Lets the clock go on, after an advance that was asked for has begun. */
  async pass(ms: number): Promise<void> {
    await Promise.resolve();
    this.#now += ms;
  }

  /** Lets the store answer one write, if one is under way, and waits for the call. */
  async run(call: Promise<void>): Promise<void> {
    await new Promise(setImmediate);
    this.#answering.resolve();
    this.#answering = createDeferred();
    return call;
  }
}

it("adds at most two seconds at once although the store hangs while the time is advanced again and again", async () => {
  const keeper = new Keeper();
  const { times } = keeper;
  await times.advance(defaultGroupId);
  const calls: Promise<void>[] = [];
  for (let count = 0; count < 5; count += 1) {
    await keeper.pass(1_000);
    calls.push(times.advance(defaultGroupId));
  }
  for (const call of calls) await keeper.run(call);
  expect(await times.find(defaultGroupId)).toBe(2_000);
  await keeper.pass(1_000);
  await keeper.run(times.advance(defaultGroupId));
  expect(await times.find(defaultGroupId)).toBe(3_000);
});

it("loses no time if writes take 0.9 s each, and counts up to the moment of the call", async () => {
  const keeper = new Keeper();
  const { times } = keeper;
  await times.advance(defaultGroupId);
  await keeper.pass(100);
  let earlier = times.advance(defaultGroupId);
  for (let count = 1; count <= 20; count += 1) {
    await keeper.pass(900);
    const later = times.advance(defaultGroupId);
    await keeper.run(earlier);
    earlier = later;
  }
  await keeper.run(earlier);
  expect(await times.find(defaultGroupId)).toBe(18_100);
});

it("adds nothing for the time in which another node kept the time", async () => {
  const keeper = new Keeper();
  const { times } = keeper;
  await times.advance(defaultGroupId);
  keeper.keeps = false;
  await times.findDue(defaultGroupId);
  await keeper.pass(60_000);
  keeper.keeps = true;
  await keeper.run(times.advance(defaultGroupId));
  expect(await times.find(defaultGroupId)).toBe(0);
});
