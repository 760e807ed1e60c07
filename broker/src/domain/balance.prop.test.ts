import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type BalancePlan, type Deliverer, planBalance, type SubscriptionCount } from "./balance.ts";
import { type GroupId, parseGroupId } from "./group-id.ts";
import type { NodeId } from "./node.ts";

interface Row {
  readonly groupId: GroupId;
  readonly state: "active" | "suspended";
  owner: NodeId | undefined;
  wantedBy: NodeId | undefined;
}

const groups = ["1", "2", "3"].map(parseGroupId);
const live = ["node-a", "node-b", "node-c", "node-d"] as NodeId[];
const dead = "node-0" as NodeId;

const someone = fc.constantFrom(...live, dead, undefined);
const rowOf = fc.record({
  groupId: fc.constantFrom(...groups),
  state: fc.constantFrom("active", "active", "active", "suspended" as const),
  owner: someone,
  wantedBy: fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: someone }),
});
const rowsOf = fc
  .array(rowOf, { maxLength: 60 })
  .map((rows) => rows.map((row): Row => (row.wantedBy === row.owner ? { ...row, wantedBy: undefined } : { ...row })));
const nodesOf = fc
  .tuple(...live.map((id) => fc.record({ id: fc.constant(id), groups: fc.subarray(groups) })))
  .chain((nodes) => fc.shuffledSubarray(nodes));

/** A simulated cluster with its rows in order. */
class Cluster {
  readonly rows: readonly Row[];
  readonly nodes: readonly Deliverer[];
  requested = 0;

  constructor(nodes: readonly Deliverer[], rows: readonly Row[]) {
    this.nodes = nodes;
    this.rows = rows.map((row) => ({ ...row }));
  }

  plan(movesMax: number): BalancePlan {
    const counts = this.rows.map((row): SubscriptionCount => ({ ...row, count: 1 }));
    return planBalance({ nodes: this.nodes, counts }, { giftsMax: movesMax, requestsMax: movesMax });
  }

  apply({ gifts, requests }: BalancePlan): void {
    for (const { groupId, state, to, count } of gifts) {
      const orphans = this.rows.filter(
        (row) => row.groupId === groupId && row.state === state && !this.#isLive(row.owner),
      );
      expect(orphans.length).toBeGreaterThanOrEqual(count);
      for (const row of orphans.slice(0, count)) Object.assign(row, { owner: to, wantedBy: undefined });
    }
    for (const { groupId, from, to, count } of requests) {
      const settled = this.#of(groupId).filter((row) => row.owner === from && !this.#isLive(row.wantedBy));
      expect(settled.length).toBeGreaterThanOrEqual(count);
      for (const row of settled.slice(0, count)) row.wantedBy = to;
      this.requested += count;
    }
  }

  /** Completes the requested handovers and returns their number. */
  handOver(): number {
    const asked = this.rows.filter(
      ({ owner, wantedBy, state }) => this.#isLive(owner) && this.#isLive(wantedBy) && state === "active",
    );
    for (const row of asked) Object.assign(row, { owner: row.wantedBy, wantedBy: undefined });
    return asked.length;
  }

  deliverersOf(groupId: GroupId): readonly NodeId[] {
    return this.nodes.filter((node) => node.groups.includes(groupId)).map(({ id }) => id);
  }

  countOwned(groupId: GroupId, node: NodeId): number {
    return this.#of(groupId).filter(({ owner }) => owner === node).length;
  }

  orphansOf(groupId: GroupId): readonly Row[] {
    return this.rows.filter((row) => row.groupId === groupId && !this.#isLive(row.owner));
  }

  /** The minimum number of moves that evens out a group, found by trying every choice of the nodes that get one more. */
  fewestRequests(groupId: GroupId): number {
    const deliverers = this.deliverersOf(groupId);
    const expected = (node: NodeId) =>
      this.#of(groupId).filter(
        ({ owner, wantedBy }) => this.#isLive(owner) && (this.#isLive(wantedBy) ? wantedBy : owner) === node,
      ).length;
    const total = this.#of(groupId).length;
    const more = total % deliverers.length;
    const elsewhere = live.filter((node) => !deliverers.includes(node)).reduce((sum, node) => sum + expected(node), 0);
    const choices = Array.from({ length: 2 ** deliverers.length }, (_, bits) => bits).filter(
      (bits) => deliverers.filter((_, place) => bits & (1 << place)).length === more,
    );
    const costs = choices.map((bits) =>
      deliverers
        .map((node, place) => expected(node) - Math.floor(total / deliverers.length) - (bits & (1 << place) ? 1 : 0))
        .reduce((sum, surplus) => sum + Math.max(0, surplus), elsewhere),
    );
    return Math.min(...costs);
  }

  #of(groupId: GroupId): readonly Row[] {
    return this.rows.filter((row) => row.groupId === groupId && row.state === "active");
  }

  #isLive(node: NodeId | undefined): node is NodeId {
    return this.nodes.some(({ id }) => id === node);
  }
}

describe("planBalance, applied repeatedly", () => {
  const cases = fc.record({
    nodes: nodesOf,
    rows: rowsOf,
    movesMax: fc.integer({ min: 1, max: 20 }),
    handsOver: fc.array(fc.boolean(), { minLength: 1, maxLength: 8 }).map((turns) => [...turns, true]),
  });

  it("spreads each group evenly over the nodes that can deliver it, up to a difference of one, with the fewest moves", () => {
    fc.assert(
      fc.property(cases, ({ nodes, rows, movesMax, handsOver }) => {
        const cluster = new Cluster(nodes, rows);
        const delivered = groups.filter((groupId) => cluster.deliverersOf(groupId).length > 0);
        const fewest = delivered.reduce((sum, groupId) => sum + cluster.fewestRequests(groupId), 0);
        const stepsMax = (rows.length + 2) * handsOver.length;
        let quiet = 0;
        for (let step = 0; quiet < handsOver.length; step += 1) {
          expect(step).toBeLessThan(stepsMax + handsOver.length);
          const plan = cluster.plan(movesMax);
          expectAllowed(plan, cluster, movesMax);
          cluster.apply(plan);
          const handedOver = handsOver[step % handsOver.length] ? cluster.handOver() : 0;
          quiet = plan.gifts.length + plan.requests.length + handedOver === 0 ? quiet + 1 : 0;
        }
        for (const groupId of delivered) {
          const owned = cluster.deliverersOf(groupId).map((node) => cluster.countOwned(groupId, node));
          expect(Math.max(...owned) - Math.min(...owned)).toBeLessThanOrEqual(1);
          expect(cluster.orphansOf(groupId)).toEqual([]);
        }
        expect(cluster.requested).toBe(fewest);
      }),
      { numRuns: 500 },
    );
  });

  it("does not depend on the order of the nodes or of the counts", () => {
    fc.assert(
      fc.property(cases, ({ nodes, rows, movesMax }) => {
        const reversed = new Cluster(nodes.toReversed(), rows.toReversed());
        expect(reversed.plan(movesMax)).toEqual(new Cluster(nodes, rows).plan(movesMax));
      }),
    );
  });
});

function expectAllowed({ gifts, requests }: BalancePlan, cluster: Cluster, movesMax: number): void {
  expect(sum(gifts)).toBeLessThanOrEqual(movesMax);
  expect(sum(requests)).toBeLessThanOrEqual(movesMax);
  for (const { groupId, to, count } of [...gifts, ...requests]) {
    expect(cluster.deliverersOf(groupId)).toContain(to);
    expect(count).toBeGreaterThan(0);
  }
  for (const { from, to } of requests) expect(from).not.toBe(to);
}

function sum(moves: readonly { readonly count: number }[]): number {
  return moves.reduce((total, { count }) => total + count, 0);
}
