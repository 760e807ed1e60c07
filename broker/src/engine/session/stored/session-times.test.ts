import { expect, it } from "vitest";
import { defaultGroupId } from "../../../domain/group-id.ts";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { createMemoryStore } from "../../../store/memory/memory-store.ts";
import { SessionTimes } from "./session-times.ts";

it("loses no time when it is advanced more often than once a millisecond", async () => {
  const store = createMemoryStore();
  let now = 0;
  const clock = Object.assign(new VirtualClock(), { monotonic: () => now });
  const times = new SessionTimes({ store, clock, isKeeper: () => true, isShared: false, hasKeys: () => false });
  for (; now < 1_000; now += 0.75) await times.advance(defaultGroupId);
  expect(await times.find(defaultGroupId)).toBe(999);
});
