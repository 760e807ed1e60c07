import { describe, expect, it } from "vitest";
import { planBalance, type SubscriptionCount } from "./balance.ts";
import { parseGroupId } from "./group-id.ts";
import type { NodeId } from "./node.ts";

const group = parseGroupId("1");
const [a, b, c] = ["a", "b", "c"] as [NodeId, NodeId, NodeId];
const nodes = [a, b, c].map((id) => ({ id, groups: [group] }));
const countOf = (count: number, change: Partial<SubscriptionCount> = {}): SubscriptionCount => ({
  groupId: group,
  state: "active",
  owner: undefined,
  wantedBy: undefined,
  count,
  ...change,
});
const limits = { giftsMax: 1000, requestsMax: 1000 };

describe("planBalance", () => {
  it("spreads the subscriptions of a dead node evenly over the others", () => {
    const dead = "dead" as NodeId;
    const counts = [
      countOf(10, { owner: a }),
      countOf(8, { owner: b }),
      countOf(9, { owner: c }),
      countOf(9, { owner: dead }),
    ];
    expect(planBalance({ nodes, counts }, limits)).toEqual({
      gifts: [
        { groupId: group, state: "active", to: b, count: 4 },
        { groupId: group, state: "active", to: c, count: 3 },
        { groupId: group, state: "active", to: a, count: 2 },
      ],
      requests: [],
      unserved: [],
    });
  });

  it("names each group with active subscriptions that no member can deliver", () => {
    const [active, suspended] = [parseGroupId("2"), parseGroupId("3")];
    const counts = [
      countOf(1, { owner: a }),
      countOf(1, { groupId: active, owner: a }),
      countOf(1, { groupId: active }),
      countOf(1, { groupId: suspended, state: "suspended" }),
    ];
    expect(planBalance({ nodes, counts }, limits).unserved).toEqual([active]);
  });

  it("moves subscriptions from the other nodes to a node that joins", () => {
    const counts = [countOf(15, { owner: a }), countOf(15, { owner: b })];
    expect(planBalance({ nodes, counts }, limits).requests).toEqual([
      { groupId: group, from: a, to: c, count: 5 },
      { groupId: group, from: b, to: c, count: 5 },
    ]);
  });

  it.each([
    [[1000, 1015, 985], 0],
    [[1000, 1016, 984], 16],
    [[1013, 1013, 974], 26],
    [[21, 22, 20], 1],
  ])("for nodes that own %j subscriptions, requests %i moves", (owned, moves) => {
    const counts = nodes.map(({ id }, index) => countOf(owned[index] ?? 0, { owner: id }));
    const { gifts, requests } = planBalance({ nodes, counts }, limits);
    expect(gifts).toEqual([]);
    expect(requests.reduce((sum, { count }) => sum + count, 0)).toBe(moves);
  });

  it("does not request a handover twice", () => {
    const counts = [countOf(10, { owner: a }), countOf(5, { owner: a, wantedBy: c }), countOf(15, { owner: b })];
    expect(planBalance({ nodes, counts }, limits).requests).toEqual([{ groupId: group, from: b, to: c, count: 5 }]);
  });

  it("does not give the remainders of many groups to one node", () => {
    const groups = Array.from({ length: 9 }, (_, index) => parseGroupId(`${index + 1}`));
    const everywhere = nodes.map((node) => ({ ...node, groups }));
    const { gifts } = planBalance(
      { nodes: everywhere, counts: groups.map((groupId) => countOf(1, { groupId })) },
      limits,
    );
    expect([a, b, c].map((node) => gifts.filter(({ to }) => to === node).length)).toEqual([3, 3, 3]);
  });

  it("requests all subscriptions of a group from a node that can no longer deliver it", () => {
    const leaving = [{ id: a, groups: [] }, ...nodes.slice(1)];
    expect(planBalance({ nodes: leaving, counts: [countOf(3, { owner: a })] }, limits).requests).toEqual([
      { groupId: group, from: a, to: b, count: 2 },
      { groupId: group, from: a, to: c, count: 1 },
    ]);
  });

  it("leaves a group unchanged if no node can deliver it", () => {
    const counts = [countOf(3, { groupId: parseGroupId("2") }), countOf(3, { groupId: parseGroupId("2"), owner: a })];
    expect(planBalance({ nodes, counts }, limits)).toMatchObject({ gifts: [], requests: [] });
    expect(planBalance({ nodes: [], counts }, limits)).toMatchObject({ gifts: [], requests: [] });
  });

  it("never requests a suspended subscription, nor counts it in a target", () => {
    const counts = [countOf(90, { owner: a, state: "suspended" }), countOf(3)];
    const plan = planBalance({ nodes, counts }, limits);
    expect(plan.requests).toEqual([]);
    expect(plan.gifts.map(({ count }) => count)).toEqual([1, 1, 1]);
  });
});
