import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { NodeId } from "../domain/node.ts";
import { endOfBlock, toPosition } from "../domain/position.ts";
import { parseTopicFilter } from "../domain/topic-filter.ts";
import { parseTopicName } from "../domain/topic-name.ts";
import type { Coordinator, GroupLease, Hint } from "./coordinator.ts";
import type { BlockRef } from "./ledger.ts";
import { LeaseLostError, type Progress, type Store } from "./store.ts";
import { readIndex } from "./store-rollback.contract.ts";
import {
  alpha,
  batchOf,
  blockOf,
  group,
  hashOf,
  history,
  otherGroup,
  subscriptionOf,
  topicOf,
} from "./store-examples.contract.ts";

/** A store that nodes share, and their coordinators. */
export interface SharedStoreFixture {
  /** Two nodes' views of the store; started. */
  readonly stores: readonly [Store, Store];
  readonly coordinator: Coordinator;
  close(): Promise<void>;
}

const lastsMs = 60_000;
const ref = (number: number): BlockRef => ({ number, hash: hashOf(number) });
const all = parseTopicFilter("#");

/** Identifiers of the two nodes. */
export const oneNode = "00000000-0000-4000-9000-000000000001" as NodeId; // Any UUID is valid.
export const otherNode = "00000000-0000-4000-9000-000000000002" as NodeId; // Any UUID is valid.

function testCount(fixture: () => SharedStoreFixture): void {
  it("each node counts the subscriptions that any node created or removed, also concurrently", async () => {
    const { stores } = fixture();
    const numbers = Array.from({ length: 100 }, (_, index) => index);
    const made = await Promise.all(
      numbers.flatMap((number) => stores.map((store) => store.insertSubscription(subscriptionOf(number), 0))),
    );
    expect(made.filter((outcome) => outcome === "inserted")).toHaveLength(100);
    for (const store of stores) expect(await store.countSubscriptions()).toBe(100);
    const gone = numbers.filter((number) => number % 3 === 0).map((number) => subscriptionOf(number));
    await Promise.all(gone.flatMap((one) => stores.map((store) => store.deleteSubscription(one))));
    for (const store of stores) expect(await store.countSubscriptions()).toBe(100 - gone.length);
  });
}

/** Joins a node and takes the group's lease, which no live member holds. */
export async function takeLease(coordinator: Coordinator, nodeId: NodeId, of = group): Promise<GroupLease> {
  await coordinator.join({ id: nodeId, address: `${nodeId}.example:8080` }, lastsMs);
  const lease = await coordinator.takeLease(of, nodeId);
  if (lease === undefined) throw new Error("another member has the lease");
  return lease;
}

/** Guarantees of the Store port beyond {@link testStore} if nodes share a store. */
export function testSharedStore(name: string, create: () => Promise<SharedStoreFixture>): void {
  describe(`${name} keeps the contract of a store that nodes share`, () => {
    let fixture: SharedStoreFixture;
    beforeEach(async () => {
      fixture = await create();
    });
    afterEach(async () => fixture.close());

    describe("leases", () => testLeases(() => fixture));
    describe("subscriptions", () => testCount(() => fixture));
    describe("rolling back", () => testRollBack(() => fixture));
    describe("hints", () => testHints(() => fixture));
  });
}

function testLeases(fixture: () => SharedStoreFixture): void {
  it("the holder of the newest lease can write the index", async () => {
    const { coordinator, stores } = fixture();
    const lease = await takeLease(coordinator, oneNode);
    await stores[0].applyBlocks(group, history, { isFinal: false, lease });
    await stores[0].rollBack(group, ref(2), lease);
    await coordinator.leave(oneNode);
    const next = await takeLease(coordinator, otherNode);
    await stores[1].applyBlocks(group, history.slice(2), { isFinal: false, lease: next });
    expect(await stores[0].findTopic(group, alpha)).toMatchObject({ sequence: 8, blockNumber: 6 });
  });
  it.each<[string, (lease: GroupLease) => GroupLease]>([
    ["an older epoch", (lease) => ({ ...lease, epoch: lease.epoch - 1 })],
    ["a later epoch", (lease) => ({ ...lease, epoch: lease.epoch + 1 })],
    ["another node", (lease) => ({ ...lease, nodeId: otherNode })],
    ["another group", (lease) => ({ ...lease, groupId: otherGroup })],
  ])("a write under a lease with %s is refused, and changes nothing", async (_, change) => {
    const { coordinator, stores } = fixture();
    const lease = await takeLease(coordinator, oneNode);
    await expectRefused(stores[0], change(lease));
  });
  it("a write by the former holder of a lease is refused, and changes nothing", async () => {
    const { coordinator, stores } = fixture();
    const lease = await takeLease(coordinator, oneNode);
    await coordinator.leave(oneNode);
    await takeLease(coordinator, otherNode);
    await expectRefused(stores[0], lease);
  });
  it("a write after releasing the lease is refused, and changes nothing", async () => {
    const { coordinator, stores } = fixture();
    const lease = await takeLease(coordinator, oneNode);
    await coordinator.releaseLease(lease);
    await expectRefused(stores[0], lease);
  });
  it("two concurrent followers write one consistent index, even while the lease moves", async () => {
    const { coordinator, stores } = fixture();
    await stores[0].applyBlocks(group, [blockOf(0, { opened: [topicOf(alpha)] })]);
    let [lease, nodes] = [await takeLease(coordinator, oneNode), [oneNode, otherNode] as const];
    for (let round = 0; round < 30; round += 1) {
      const stale = lease;
      const next = nodes[(round + 1) % 2] ?? oneNode;
      const takingOver = async () => {
        await coordinator.leave(stale.nodeId);
        lease = await takeLease(coordinator, next);
        await applyNext(stores[1], lease);
      };
      const [before] = await Promise.allSettled([applyNext(stores[0], stale), takingOver()]);
      if (before.status === "rejected") expect(String(before.reason)).toMatch(/follows group 1|does not follow/);
      await expect(applyNext(stores[0], stale)).rejects.toThrow(LeaseLostError);
    }
    const sequence = (await stores[0].findTopic(group, alpha))?.sequence ?? 0;
    expect((await stores[0].findHead(group))?.blockNumber).toBe(sequence);
    expect(await stores[0].countEventsAfter(group, alpha, endOfBlock(0))).toBe(sequence);
    expect(sequence).toBeGreaterThanOrEqual(30);
  });
}

/** Applies the block after the store's head. */
async function applyNext(store: Store, lease: GroupLease): Promise<void> {
  const number = ((await store.findHead(group))?.blockNumber ?? 0) + 1;
  const batches = [batchOf(alpha, { block: number, sequence: number, count: 1 })];
  await store.applyBlocks(group, [blockOf(number, { batches })], { isFinal: false, lease });
}

/** Expects that writes under the lease are refused, and change neither index nor subscriptions. */
async function expectRefused(store: Store, lease: GroupLease): Promise<void> {
  await store.applyBlocks(group, history);
  await store.insertSubscription(subscriptionOf(1, { filter: all, cursor: toPosition(6, 0), owner: otherNode }), 0);
  const read = async () => [await readIndex(store), await store.listSubscriptions(), await store.findHead(group)];
  const before = await read();
  const gamma = topicOf(parseTopicName("gamma"), 3);
  const blocks = [blockOf(7, { opened: [gamma], batches: [batchOf(alpha, { block: 7, sequence: 9, count: 1 })] })];
  await expect(store.applyBlocks(group, blocks, { isFinal: false, lease })).rejects.toThrow(LeaseLostError);
  await expect(store.applyBlocks(group, blocks, { isFinal: true, lease })).rejects.toThrow(LeaseLostError);
  await expect(store.rollBack(group, ref(2), lease)).rejects.toThrow(LeaseLostError);
  await expect(store.rollBack(group, undefined, lease)).rejects.toThrow(LeaseLostError);
  expect(await read()).toEqual(before);
}

function testRollBack(fixture: () => SharedStoreFixture): void {
  const beyond = { filter: all, cursor: toPosition(6, 0), notifiedCount: 9 };
  it("a rollback gives each subscription that its node does not own a new epoch, so that the store refuses late writes of their owners", async () => {
    const { coordinator, stores } = fixture();
    const [store, stale] = stores;
    const lease = await takeLease(coordinator, oneNode);
    await store.applyBlocks(group, history);
    const given = [
      subscriptionOf(1, { ...beyond, owner: otherNode, epoch: 3 }),
      subscriptionOf(2, { ...beyond, owner: oneNode, epoch: 3 }),
      subscriptionOf(3, { ...beyond, owner: undefined, epoch: 3 }),
      subscriptionOf(4, { ...beyond, owner: otherNode, epoch: 3, state: "suspended" }),
      subscriptionOf(5, { ...beyond, owner: otherNode, epoch: 3, groupId: otherGroup }),
      subscriptionOf(6, { ...beyond, owner: otherNode, epoch: 3, cursor: toPosition(2, 0) }),
    ];
    for (const subscription of given) await store.insertSubscription(subscription, 0);
    await store.rollBack(group, ref(2), lease);
    const rows = (await store.listSubscriptions()).map(({ owner, epoch, cursor }) => [owner, epoch, cursor]);
    const end = endOfBlock(2);
    expect(rows).toEqual([
      [otherNode, 4, end],
      [oneNode, 3, end],
      [undefined, 4, end],
      [otherNode, 4, end],
      [otherNode, 3, toPosition(6, 0)],
      [otherNode, 4, toPosition(2, 0)],
    ]);
    const refused = await stale.saveProgress([1, 6].map((number) => progress(number, 3)));
    expect(refused.toSorted()).toEqual([subscriptionOf(1).id, subscriptionOf(6).id]);
    expect(await stale.setSubscriptionState({ id: subscriptionOf(1).id, epoch: 3 }, "suspended")).toBe(false);
  });
  it("a rollback without a lease gives subscriptions no new epoch", async () => {
    const [store] = fixture().stores;
    await store.applyBlocks(group, history);
    await store.insertSubscription(subscriptionOf(1, { ...beyond, owner: otherNode, epoch: 3 }), 0);
    await store.rollBack(group, ref(2));
    expect(await store.findSubscription(subscriptionOf(1).id)).toMatchObject({ epoch: 3, cursor: endOfBlock(2) });
  });
  it("a rollback leaves no cursor beyond the block, even with concurrent inserts and saves on another node", async () => {
    const { coordinator, stores } = fixture();
    const lease = await takeLease(coordinator, oneNode);
    await stores[0].applyBlocks(group, history);
    for (let round = 1; round <= 30; round += 1) {
      const kept = subscriptionOf(2 * round, { ...beyond, owner: otherNode, cursor: toPosition(2, 0) });
      const generation = (await stores[1].findHead(group))?.generation ?? 0;
      await stores[1].insertSubscription(kept, generation);
      const inserted = subscriptionOf(2 * round + 1, { ...beyond, owner: otherNode });
      const [, outcome] = await Promise.all([
        stores[0].rollBack(group, ref(2), lease),
        stores[1].insertSubscription(inserted, generation),
        stores[1].saveProgress([progress(2 * round, 0)]),
      ]);
      const cursors = (await stores[0].listSubscriptions()).map(({ cursor }) => cursor);
      expect(Math.max(...cursors)).toBeLessThanOrEqual(endOfBlock(2));
      expect(cursors).toHaveLength(outcome === "inserted" ? 2 : 1);
      for (const subscription of await stores[0].listSubscriptions()) await stores[0].deleteSubscription(subscription);
      await stores[0].applyBlocks(group, history.slice(2), { isFinal: false, lease });
    }
  });
}

function progress(number: number, epoch: number): Progress {
  return {
    id: subscriptionOf(number).id,
    epoch,
    cursor: toPosition(6, 0),
    notifiedCount: 50,
    notifiedAt: 1,
    failedAttempts: 0,
    failedMs: 0,
    failingSince: 0,
    retryAt: 0,
  };
}

function testHints(fixture: () => SharedStoreFixture): void {
  it("notifies listeners of a change of the index, but not of a refused write", async () => {
    const { coordinator, stores } = fixture();
    const lease = await takeLease(coordinator, oneNode);
    await using heard = await Hearing.start(coordinator);
    await stores[1].applyBlocks(group, history, { isFinal: false, lease });
    await heard.until(1, group);
    await stores[1].rollBack(group, ref(2), lease);
    await heard.until(2, group);
    const stale = { ...lease, epoch: lease.epoch - 1 };
    await expect(stores[1].applyBlocks(group, history.slice(2), { isFinal: false, lease: stale })).rejects.toThrow();
    await stores[1].applyBlocks(otherGroup, history); // Hints arrive in order.
    await heard.until(1, otherGroup);
    expect(heard.count(group)).toBe(2);
  });
}

/** Hints received so far. */
class Hearing {
  readonly #hints: Hint[] = [];
  readonly #stop: () => Promise<void>;
  #wake = (): void => {};

  static async start(coordinator: Coordinator): Promise<Hearing> {
    const hints: ((hint: Hint) => void)[] = [];
    const stop = await coordinator.listen((hint) => hints[0]?.(hint));
    const hearing = new Hearing(stop);
    hints.push((hint) => hearing.#hear(hint));
    return hearing;
  }

  private constructor(stop: () => Promise<void>) {
    this.#stop = stop;
  }

  count(of: typeof group): number {
    return this.#hints.filter((hint) => hint.kind === "index" && hint.groupId === of).length;
  }

  async until(count: number, of: typeof group): Promise<void> {
    while (this.count(of) < count) await new Promise<void>((resolve) => (this.#wake = resolve));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
  }

  #hear(hint: Hint): void {
    this.#hints.push(hint);
    this.#wake();
  }
}
