import { expect, it, onTestFinished } from "vitest";
import type { NodeId } from "../../domain/node.ts";
import type { Hint } from "../../ports/coordinator.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { createMemoryCluster } from "../../store/memory/memory-cluster.ts";
import { MemberWatch } from "./member-watch.ts";

const lastsMs = 3_600_000;
const [own, other] = ["own" as NodeId, "other" as NodeId];

/** Creates a watch of a cluster of these nodes. The coordinator answers each listing after `listing.answerMs`, as set at the time of the call. */
async function create(ids: readonly NodeId[]) {
  const clock = new VirtualClock();
  const { coordinator } = createMemoryCluster({ clock });
  const join = (id: NodeId) => coordinator.join({ id, address: `${id}:1` }, lastsMs);
  for (const id of ids) await join(id);
  let hear: ((hint: Hint) => void) | undefined;
  onTestFinished(await coordinator.listen((hint) => hear?.(hint)));
  const listing = { answerMs: 0 };
  const listNodes = async () => {
    const { answerMs } = listing;
    const nodes = await coordinator.listNodes();
    await new Promise<void>((resolve) => void clock.after(answerMs, resolve));
    return nodes;
  };
  const onHint = (listener: (hint: Hint) => void) => {
    hear = listener;
    return () => {};
  };
  const slow = { listNodes, listLeases: () => coordinator.listLeases() };
  const watch = new MemberWatch({ coordinator: slow, member: { onHint }, clock });
  const changes = () => watch.history.list().map(({ what, node }) => [what, node]);
  const first = watch.check(own);
  await clock.advance(1_000);
  await first;
  return { clock, coordinator, join, listing, watch, changes };
}

it("notes once that a node left while the watch was listing the nodes", async () => {
  const { clock, coordinator, listing, watch, changes } = await create([own, other]);
  listing.answerMs = 500;
  const second = watch.check(own);
  await clock.advance(100);
  await coordinator.leave(other);
  await clock.advance(60_000);
  await second;
  expect(changes()).toEqual([
    ["left", "other:1"],
    ["joined", "own:1"],
  ]);
});

it("does not note a node as gone if a listing from before its join is answered after a later listing", async () => {
  const { clock, join, listing, watch, changes } = await create([own]);
  listing.answerMs = 500;
  const early = watch.check(own);
  await clock.advance(100);
  await join(other);
  listing.answerMs = 0;
  const late = watch.check(own);
  await clock.advance(60_000);
  await Promise.all([early, late]);
  expect(changes()).toEqual([
    ["joined", "other:1"],
    ["joined", "own:1"],
  ]);
});
