import { expect, it } from "vitest";
import type { NodeId } from "../../domain/node.ts";
import type { Hint } from "../../ports/coordinator.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { createMemoryCluster } from "../../store/memory/memory-cluster.ts";
import { MemberWatch } from "./member-watch.ts";

const lastsMs = 3_600_000;
const [own, other] = ["own" as NodeId, "other" as NodeId];

it("notes once that a node left while the watch was listing the nodes", async () => {
  const clock = new VirtualClock();
  const { coordinator } = createMemoryCluster({ clock });
  for (const id of [own, other]) await coordinator.join({ id, address: `${id}:1` }, lastsMs);
  let hear: ((hint: Hint) => void) | undefined;
  const end = await coordinator.listen((hint) => hear?.(hint));
  let answerMs = 0;
  const listNodes = async () => {
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
  const first = watch.check(own);
  await clock.advance(1_000);
  await first;
  answerMs = 500;
  const second = watch.check(own);
  await clock.advance(100);
  await coordinator.leave(other);
  await clock.advance(60_000);
  await second;
  const changes = watch.history.list().map(({ what, node }) => [what, node]);
  expect(changes).toEqual([
    ["left", "other:1"],
    ["joined", "own:1"],
  ]);
  await end();
});
