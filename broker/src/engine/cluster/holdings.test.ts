import { expect, it } from "vitest";
import type { GroupId } from "../../domain/group-id.ts";
import type { NodeId } from "../../domain/node.ts";
import type { SubscriptionId } from "../../domain/subscription.ts";
import type { Holding } from "../../ports/coordinator.ts";
import { compareHoldings, holdingsPageMax } from "./holdings.ts";

const group = "1" as GroupId; // Any string is a valid id here.
const otherGroup = "2" as GroupId;
const id = (number: number): SubscriptionId => `id-${number}` as SubscriptionId;
const holding = (number: number, more: Partial<Holding> = {}): Holding => ({
  id: id(number),
  epoch: 1,
  groupId: group,
  wantedBy: undefined,
  ...more,
});

it("returns no difference if every holding has its worker", () => {
  expect(compareHoldings([holding(1)], [holding(1)])).toEqual({ wanted: [], doubtful: [] });
});

it.each([
  ["a holding without a worker", [holding(1)], []],
  ["a worker without a holding", [], [holding(1)]],
  ["a worker of an older epoch", [holding(1, { epoch: 2 })], [holding(1)]],
])("returns %s as doubtful", (_, holdings, workers) => {
  expect(compareHoldings(holdings, workers)).toEqual({ wanted: [], doubtful: [{ groupId: group, items: [id(1)] }] });
});

it("returns holdings that another node asks for as wanted, with or without a worker", () => {
  const wanted = [holding(1, { wantedBy: "node" as NodeId }), holding(2, { wantedBy: "node" as NodeId })];
  expect(compareHoldings(wanted, [holding(1)])).toEqual({ wanted: [{ groupId: group, items: wanted }], doubtful: [] });
});

it("splits a group's subscriptions into pages of holdingsPageMax", () => {
  const many = Array.from({ length: holdingsPageMax + 1 }, (_, number) => holding(number));
  const { doubtful } = compareHoldings([...many, holding(-1, { groupId: otherGroup })], []);
  expect(doubtful.map(({ groupId, items }) => [groupId, items.length])).toEqual([
    [group, holdingsPageMax],
    [group, 1],
    [otherGroup, 1],
  ]);
});
