import { expect, it } from "vitest";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { createLaterReads, sessionOf } from "../../testing/later-reads.ts";
import type { LaterReads } from "./later-reads.ts";

const clock = new VirtualClock();

/** Reads of sessions in a store that takes 10 ms for each, with the identifiers of the sessions in the order of their reads. */
function createReads(): { readonly reads: LaterReads; readonly begun: readonly string[] } {
  const begun: string[] = [];
  const findSession = async (id: string): Promise<undefined> => {
    begun.push(id);
    await new Promise<void>((resolve) => void clock.after(10, resolve));
  };
  return { reads: createLaterReads(clock, findSession), begun };
}

const all = Array.from({ length: 30 }, (_, index) => sessionOf(String(index)));

it("reads each session once more, not twice, if all may have changed twice while the store is slow", async () => {
  const { reads, begun } = createReads();
  reads.readAll(all);
  await clock.advance(15);
  const before = new Set(begun);
  expect([before.size, begun.length]).toEqual([8, 8]);
  reads.readAll(all);
  reads.readAll(all);
  await clock.advance(1_000);
  expect(begun.slice(8).toSorted()).toEqual(all.map(({ id }) => id).toSorted());
  reads.readAll(all.slice(0, 1));
  await clock.advance(10);
  expect(begun).toHaveLength(39);
});

it("reads a session that a hint names at once, before the others that may have changed", async () => {
  const { reads, begun } = createReads();
  reads.readAll(all);
  await clock.advance(5);
  const [last] = all.slice(-1);
  if (last !== undefined) void reads.readUntilDone(last);
  await clock.settle();
  expect(begun).toEqual(["0", "1", "2", "3", "29"]);
});

it.each([true, false])(
  "searches for returned events when another node has taken a session only if the session was a member of a share: %s",
  async (hasJoined) => {
    let checks = 0;
    const reads = createLaterReads(
      clock,
      async () => undefined,
      () => void (checks += 1),
    );
    await reads.readUntilDone(sessionOf("1", { hasJoined }));
    expect(checks).toBe(hasJoined ? 1 : 0);
  },
);

it("reads the sessions of a group while those of another group wait", async () => {
  const { reads, begun } = createReads();
  reads.readAll([...all, sessionOf("other")]);
  await clock.advance(5);
  expect(begun).toEqual(["0", "1", "2", "3", "other"]);
});
