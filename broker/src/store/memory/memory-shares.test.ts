import { expect, it, onTestFinished, vi } from "vitest";
import { positionZero, toPosition } from "../../domain/position.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { filterOf, idOf } from "../../ports/session-examples.contract.ts";
import type { SessionId, ShareId } from "../../ports/session-store.ts";
import { group } from "../../ports/store-examples.contract.ts";
import { MemoryShares } from "./memory-shares.ts";

const topic = parseTopicName("a");

/** Shares whose only member has these events. Counts the events that are checked. */
async function startShares({ count, events }: { readonly count: number; readonly events: number }) {
  const positions = Array.from({ length: events }, (_, index) => toPosition(9, index));
  const checks = { count: 0 };
  const current = new Map([[idOf(1), 0]]);
  const epochOf = (id: SessionId): number | undefined => {
    checks.count += 1;
    return current.get(id);
  };
  const shares = new MemoryShares({ epochOf, isMember: () => true });
  const ids: ShareId[] = [];
  for (let number = 0; number < count; number += 1) {
    const filter = parseTopicFilter(`$share/s${number}/a`);
    shares.join(group, [{ ...filterOf(number), filter }]);
    const share = await shares.findShare(group, filter);
    if (share === undefined) throw new Error("there is no share");
    const gifts = positions.map((position) => ({ topic, position, to: { id: idOf(1), epoch: 0 } }));
    await shares.takeShared({ ...share, cursor: toPosition(9, events - 1), gifts, dropped: [] });
    ids.push(share.id);
  }
  checks.count = 0;
  return { shares, positions, checks, ids, end: () => current.clear() };
}

it("checks as many returned events as a page lists, and only one to find out whether a share has any", async () => {
  const { shares, positions, checks, ids, end } = await startShares({ count: 1, events: 1_000 });
  end();
  const [id = "" as ShareId] = ids;
  const first = await shares.listReturned(id, { after: positionZero, atMost: 64 });
  const second = await shares.listReturned(id, { after: toPosition(9, 63), atMost: 64 });
  expect([...first, ...second].map(({ position }) => position)).toEqual(positions.slice(0, 128));
  expect(checks.count).toBe(128);
  expect(await shares.findReturning(ids)).toEqual(ids);
  expect(checks.count).toBe(129);
});

/** Returns the order in which other work and a read happen. Between two reads of the clock, more time passes than a slice may take. */
async function orderOf(read: () => Promise<unknown>): Promise<readonly string[]> {
  let now = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => (now += 6));
  onTestFinished(() => clock.mockRestore());
  const order: string[] = [];
  setImmediate(() => order.push("other work"));
  await read().then(() => order.push("read"));
  return order;
}

it.each([
  { count: 1, events: 3_000 },
  { count: 30, events: 100 },
])("other work gets its turn during a search for shares with returned events: %j", async (size) => {
  const { shares, ids } = await startShares(size);
  expect(await orderOf(() => shares.findReturning(ids))).toEqual(["other work", "read"]);
});

it("other work gets its turn during a search for the returned events of a share", async () => {
  const { shares, ids } = await startShares({ count: 1, events: 3_000 });
  const [id = "" as ShareId] = ids;
  const read = () => shares.listReturned(id, { after: positionZero, atMost: 64 });
  expect(await orderOf(read)).toEqual(["other work", "read"]);
});
