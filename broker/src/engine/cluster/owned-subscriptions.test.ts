import { expect, it } from "vitest";
import type { GroupId } from "../../domain/group-id.ts";
import type { NodeId } from "../../domain/node.ts";
import type { SubscriptionId } from "../../domain/subscription.ts";
import type { OwnedSubscription } from "../../ports/coordinator.ts";
import { compareOwned, ownedPageMax } from "./owned-subscriptions.ts";

const group = "1" as GroupId; // Any string is a valid id here.
const otherGroup = "2" as GroupId;
const id = (number: number): SubscriptionId => `id-${number}` as SubscriptionId;
const owned = (number: number, more: Partial<OwnedSubscription> = {}): OwnedSubscription => ({
  id: id(number),
  epoch: 1,
  groupId: group,
  wantedBy: undefined,
  ...more,
});

it("returns no difference if every owned subscription has its worker", () => {
  expect(compareOwned([owned(1)], [owned(1)])).toEqual({ wanted: [], doubtful: [] });
});

it.each([
  ["an owned subscription without a worker", [owned(1)], []],
  ["a worker whose subscription is not owned", [], [owned(1)]],
  ["a worker of an older epoch", [owned(1, { epoch: 2 })], [owned(1)]],
])("returns %s as doubtful", (_, subscriptions, workers) => {
  const items = [expect.objectContaining({ id: id(1) })];
  expect(compareOwned(subscriptions, workers)).toEqual({ wanted: [], doubtful: [{ groupId: group, items }] });
});

it("returns as wanted the owned subscriptions that another node asks for, with or without a worker", () => {
  const wanted = [owned(1, { wantedBy: "node" as NodeId }), owned(2, { wantedBy: "node" as NodeId })];
  expect(compareOwned(wanted, [owned(1)])).toEqual({ wanted: [{ groupId: group, items: wanted }], doubtful: [] });
});

it("splits a group's subscriptions into pages of ownedPageMax", () => {
  const many = Array.from({ length: ownedPageMax + 1 }, (_, number) => owned(number));
  const { doubtful } = compareOwned([...many, owned(-1, { groupId: otherGroup })], []);
  expect(doubtful.map(({ groupId, items }) => [groupId, items.length])).toEqual([
    [group, ownedPageMax],
    [group, 1],
    [otherGroup, 1],
  ]);
});
