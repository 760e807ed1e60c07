import { expect, it } from "vitest";
import type { Store } from "../ports/store.ts";
import { createMemoryStore } from "../store/memory/memory-store.ts";
import { hungMsMax } from "./engine-options.ts";
import { TestEngine } from "./testing/test-engine.ts";

const graceMs = 5_000;

/** A store whose calls of one name hang once `isHung` is set. */
class HungStore {
  isHung = false;
  readonly store: Store;

  constructor(call: keyof Store) {
    this.store = new Proxy(createMemoryStore(), {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== "function") return member;
        return (...args: unknown[]) =>
          this.isHung && name === call ? new Promise(() => {}) : Reflect.apply(member, target, args);
      },
    });
  }
}

it.each([
  ["saveProgress", "writing of progress"],
  ["applyBlocks", "indexing"],
  ["stop", "store"],
] as const)(
  "a stop ends soon after its deadline while `%s` of the store hangs, and names the part that hangs",
  async (call, part) => {
    const hung = new HungStore(call);
    const engine = await TestEngine.start({ store: hung.store });
    await engine.broker.open({ topic: "a", groupId: undefined });
    await engine.subscribe("a");
    hung.isHung = true;
    const published = engine.publish("a", "x");
    await engine.clock.settle();
    const outcome = engine.broker.stop(graceMs).then(
      () => "stopped",
      (error: unknown) => error,
    );
    const since = engine.clock.monotonic();
    let endedAfterMs = Number.POSITIVE_INFINITY;
    void outcome.then(() => (endedAfterMs = engine.clock.monotonic() - since));
    await engine.clock.advance(60_000);
    expect(endedAfterMs).toBeLessThanOrEqual(graceMs + hungMsMax);
    expect(await outcome).toEqual(new Error(`not stopped in time: ${part}`));
    expect(await published).toMatch(call === "applyBlocks" ? /^TIMEOUT$/ : /-1-/);
  },
);
