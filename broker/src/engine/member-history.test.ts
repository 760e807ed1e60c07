import { expect, it } from "vitest";
import type { NodeId } from "../domain/node.ts";
import { MemberHistory } from "./member-history.ts";

const idOf = (number: number): NodeId => `node-${number}` as NodeId;

it("lists the newest 100 changes, newest first, with addresses that it learned later", () => {
  let now = 0;
  const history = new MemberHistory({ now: () => now });
  for (now = 1; now <= 101; now += 1)
    history.note({ what: "took-over", nodeId: idOf(now), from: idOf(0), subscriptions: now });
  history.name(idOf(101), "a:1");
  const changes = history.list();
  expect(changes).toHaveLength(100);
  expect(changes[0]).toEqual({ at: 101, what: "took-over", node: "a:1", from: "node-0", subscriptions: 101 });
  expect(changes.at(-1)).toMatchObject({ at: 2, node: "node-2" });
});

it("remembers the addresses of the 1,000 nodes that were named last", () => {
  const history = new MemberHistory({ now: () => 0 });
  history.note({ what: "joined", nodeId: idOf(0) });
  history.note({ what: "joined", nodeId: idOf(1) });
  for (let number = 0; number < 1_000; number += 1) history.name(idOf(number), `a:${number}`);
  history.name(idOf(0), "again:1");
  history.name(idOf(1_000), "a:1000");
  expect(history.list().map(({ node }) => node)).toEqual(["node-1", "again:1"]);
});
