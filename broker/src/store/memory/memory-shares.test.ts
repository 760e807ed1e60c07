import { expect, it, onTestFinished, vi } from "vitest";
import { positionZero, toPosition } from "../../domain/position.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { filterOf, idOf } from "../../ports/session-examples.contract.ts";
import type { SessionId, ShareId } from "../../ports/session-store.ts";
import { group } from "../../ports/store-examples.contract.ts";
import { MemoryShares } from "./memory-shares.ts";

const topic = parseTopicName("a");
const positions = Array.from({ length: 1_000 }, (_, index) => toPosition(9, index));

/** Shares whose only member has ended with all of these events, and counts the events that were checked since. */
function startShares(count: number) {
  const checks = { count: 0 };
  const current = new Map([[idOf(1), 0]]);
  const epochOf = (id: SessionId): number | undefined => {
    checks.count += 1;
    return current.get(id);
  };
  const shares = new MemoryShares({ epochOf, isMember: () => true });
  const ids = Array.from({ length: count }, (_, number) => {
    const filter = parseTopicFilter(`$share/s${number}/a`);
    shares.join(group, [{ ...filterOf(number), filter }]);
    const share = shares.find(group, filter);
    if (share === undefined) throw new Error("there is no share");
    const gifts = positions.map((position) => ({ topic, position, to: { id: idOf(1), epoch: 0 } }));
    shares.take({ ...share, cursor: toPosition(9, 999), gifts, dropped: [] });
    return share.id;
  });
  current.clear();
  checks.count = 0;
  return { shares, checks, ids };
}

it("checks only as many returned events as it lists, page by page, and one to find out that a share has some", async () => {
  const { shares, checks, ids } = startShares(1);
  const [id = "" as ShareId] = ids;
  const first = shares.listReturned(id, { after: positionZero, atMost: 64 });
  const second = shares.listReturned(id, { after: toPosition(9, 63), atMost: 64 });
  expect([...first, ...second].map(({ position }) => position)).toEqual(positions.slice(0, 128));
  expect(checks.count).toBe(128);
  expect(await shares.findReturning(ids)).toEqual(ids);
  expect(checks.count).toBe(129);
});

it("lets other work have its turn while it looks for returned events of many shares", async () => {
  const { shares, ids } = startShares(3);
  let now = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => (now += 6));
  onTestFinished(() => clock.mockRestore());
  const order: string[] = [];
  setImmediate(() => order.push("other work"));
  await shares.findReturning(ids).then(() => order.push("found"));
  expect(order).toEqual(["other work", "found"]);
});
