import { BrokerError } from "@stele/wire";
import { afterEach, expect, it } from "vitest";
import { createDeferred } from "../../lib/deferred.ts";
import type { SessionStore } from "../../ports/session-store.ts";
import { LeavingPeer } from "../testing/leaving-peer.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestCluster } from "../testing/test-cluster.ts";

const key = "5e1e0000-0000-4000-8000-00000000000a";
/** Delay of a message to or from the store, in milliseconds. */
const delayMs = 10;

let cluster: TestCluster | undefined;
afterEach(async () => {
  await cluster?.stopAll();
});

/** Returns the code of the refusal, or 0 if there is none. */
async function attach(world: TestCluster, node: number, filter: string): Promise<number> {
  const request = { groupId: undefined, protocol: "STOMP", key, isClean: false, windowMax: 10 } as const;
  const stream = { filters: [filter], acknowledges: true, offset: undefined };
  const rest = { will: undefined, expiryMs: 600_000, onConnected: () => {}, stream };
  const attached = world.node(node).broker.attach({ ...request, ...rest }, new RecordingPeer());
  return attached.then(
    () => 0,
    (error: unknown) => (error instanceof BrokerError ? error.code : Number.NaN),
  );
}

it("refuses one of two streams that two nodes begin under one identifier with different filters, however much later the second begins", async () => {
  const world = await TestCluster.start(2, { delayMs: () => delayMs });
  cluster = world;
  const outcomes = new Set<string>();
  for (let lateMs = 0; lateMs <= 20 * delayMs; lateMs += delayMs / 2) {
    const first = attach(world, 0, `a/${lateMs}`);
    await world.clock.advance(lateMs);
    const codes = await world.run(Promise.all([first, attach(world, 1, `b/${lateMs}`)]));
    const listed = (await world.run(world.node(0).broker.listSubscriptions())).flatMap((node) => node.subscriptions);
    const winners = ["a", "b"].filter((_, index) => codes[index] === 0);
    expect(winners, `${lateMs} ms later: ${codes.join()}`).toHaveLength(1);
    expect(listed.map(({ filter }) => filter)).toEqual([`${winners[0]}/${lateMs}`]);
    outcomes.add(codes.join());
    await world.run(world.node(0).broker.unSubscribe({ subscriptionId: key }));
    await world.clock.advance(1_000);
  }
  expect([...outcomes]).toContain("0,100108");
});

async function attachLeaving(world: TestCluster): Promise<LeavingPeer> {
  const request = { groupId: undefined, protocol: "STOMP", key, isClean: false, windowMax: 10 } as const;
  const stream = { filters: ["a", "b"], acknowledges: true, offset: undefined };
  const rest = { will: undefined, expiryMs: 600_000, onConnected: () => {}, stream };
  const peer = new LeavingPeer({ isRegular: true });
  peer.attachment = await world.run(world.node(0).broker.attach({ ...request, ...rest }, peer));
  return peer;
}

it.each(["fails", "comes late"])(
  "ends a stream that was removed at another node, although the removal of its row %s",
  async (how) => {
    const world = await TestCluster.start(2);
    cluster = world;
    const request = { groupId: undefined, protocol: "STOMP", key, isClean: false, windowMax: 10 } as const;
    const stream = { filters: ["a"], acknowledges: true, offset: undefined };
    const rest = { will: undefined, expiryMs: 600_000, onConnected: () => {}, stream };
    const peer = new LeavingPeer({ isRegular: true });
    peer.attachment = await world.run(world.node(0).broker.attach({ ...request, ...rest }, peer));
    const { sessions } = world.shared.store;
    const remove = sessions.removeSession.bind(sessions);
    let isFirst = true;
    sessions.removeSession = async (row) => {
      const isRefused = isFirst;
      isFirst = false;
      if (isRefused && how === "fails") throw new BrokerError("storeUnreachable");
      if (isRefused) await new Promise<void>((resolve) => void world.clock.after(1_000, resolve));
      return remove(row);
    };
    await world.run(world.node(1).broker.unSubscribe({ subscriptionId: key }));
    await world.clock.advance(10_000);
    expect(peer.endedBecause).toBe("removed");
    expect(await sessions.listSessions({ after: undefined, limit: 9 })).toEqual([]);
  },
);

/** Calls `act` before each removal of a filter, with its number. */
function beforeRemovals(sessions: SessionStore, act: (count: number) => Promise<void>): void {
  const remove = sessions.removeSessionFilter.bind(sessions);
  let count = 0;
  sessions.removeSessionFilter = async (id) => {
    count += 1;
    await act(count);
    return remove(id);
  };
}

it.each([1, 2])(
  "ends a stream that is removed at another node while its client disconnects, before filter %d is removed",
  async (number) => {
    const world = await TestCluster.start(2);
    cluster = world;
    const peer = await attachLeaving(world);
    const { sessions } = world.shared.store;
    let removals = 0;
    beforeRemovals(sessions, async (count) => {
      removals = count;
      if (count === 1) peer.attachment?.detach({ expiryMs: 600_000, isRegular: true });
      if (count === number) await world.clock.settle();
    });
    await world.run(world.node(1).broker.unSubscribe({ subscriptionId: key }));
    await world.clock.advance(10_000);
    expect(removals).toBe(2);
    expect(await sessions.listSessions({ after: undefined, limit: 9 })).toEqual([]);
  },
);

it.each([1, 2])(
  "a repeat of unSubscribe at another node ends a stream, although the database failed at the first call's removal %d",
  async (number) => {
    const world = await TestCluster.start(2);
    cluster = world;
    const peer = await attachLeaving(world);
    const { sessions } = world.shared.store;
    beforeRemovals(sessions, async (count) => {
      if (count === number) throw new BrokerError("storeUnreachable");
    });
    const [row] = await sessions.listSessions({ after: undefined, limit: 9 });
    const subscriptionId = row?.filters[0]?.id ?? ""; // The identifier of any filter ends the stream. This filter is the first that the store lists.
    const unSubscribe = () => world.run(world.node(1).broker.unSubscribe({ subscriptionId }));
    await expect(unSubscribe()).rejects.toEqual(new BrokerError("storeUnreachable"));
    await unSubscribe();
    await world.clock.advance(10_000);
    expect(peer.endedBecause).toBe("removed");
    expect(await sessions.listSessions({ after: undefined, limit: 9 })).toEqual([]);
  },
);

it("keeps a stream that its client begins again and then leaves while another node is still removing the earlier one", async () => {
  const world = await TestCluster.start(2);
  cluster = world;
  const former = await attachLeaving(world);
  const { sessions } = world.shared.store;
  const remove = sessions.removeSessionFilter.bind(sessions);
  let removals = 0;
  sessions.removeSessionFilter = async (id) => {
    removals += 1;
    if (removals < 2) return remove(id);
    former.attachment?.detach({ expiryMs: 600_000, isRegular: true });
    await world.clock.settle();
    const isRemoved = await remove(id);
    (await attachLeaving(world)).attachment?.detach({ expiryMs: 600_000, isRegular: true });
    await world.clock.settle();
    return isRemoved;
  };
  await world.run(world.node(1).broker.unSubscribe({ subscriptionId: key }));
  const [row] = await sessions.listSessions({ after: undefined, limit: 9 });
  expect(row?.filters.map(({ filter }) => filter).toSorted()).toEqual(["a", "b"]);
});

it.each([
  ["the node that rolls back the index", 0],
  ["another node", 1],
])(
  "a stream at %s that ends with its connection gets the events that a reorg put in the place of others",
  async (_, other) => {
    const world = await TestCluster.start(2);
    cluster = world;
    await world.run(world.node(0).broker.open({ topic: "a", groupId: undefined }));
    const follower = await world.findFollower();
    const node = other === 0 ? follower : 1 - follower;
    const request = { groupId: undefined, protocol: "STOMP", key, isClean: true, windowMax: 10 } as const;
    const stream = { filters: ["a"], acknowledges: false, offset: undefined };
    const peer = new LeavingPeer({ isRegular: true });
    const rest = { will: undefined, expiryMs: 0, onConnected: () => {}, stream };
    peer.attachment = await world.run(world.node(node).broker.attach({ ...request, ...rest }, peer));
    for (const text of ["1", "old"]) await world.run(world.publish(follower, "a", text));
    world.chain.cutBack(world.chain.head - 1);
    await world.run(world.publish(follower, "a", "new"));
    await world.clock.advance(3_000);
    const texts = peer.deliveries.map(({ event }) => new TextDecoder().decode(event.content));
    expect([peer.endedBecause, texts]).toEqual([undefined, ["1", "old", "new"]]);
  },
);

it("a stop removes a stream whose filters another node has removed", async () => {
  const world = await TestCluster.start(2);
  cluster = world;
  await attachLeaving(world);
  const { sessions } = world.shared.store;
  const page = { after: undefined, limit: 10 };
  const [stored] = await sessions.listSessions(page);
  for (const { id } of stored?.filters ?? []) await sessions.removeSessionFilter(id);
  await world.stop(0);
  expect(stored).toBeDefined();
  expect(await sessions.listSessions(page)).toEqual([]);
});

it("a stop ends a stream that another node has removed before it closes the store", async () => {
  const world = await TestCluster.start(2);
  cluster = world;
  const peer = await attachLeaving(world);
  peer.attachment = undefined; // As if the end came before the gateway got the attachment: then its detach comes too late.
  const { store } = world.shared;
  const remove = store.sessions.removeSession.bind(store.sessions);
  const calls: string[] = [];
  const gate = createDeferred<void>();
  store.sessions.removeSession = async (...call) => {
    await gate.promise;
    calls.push("remove");
    return remove(...call);
  };
  store.stop = async () => void calls.push("stop");
  await world.run(world.node(1).broker.unSubscribe({ subscriptionId: key }));
  const stopped = world.node(0).broker.stop(5_000);
  await world.clock.advance(2_000);
  expect([peer.endedBecause, ...calls]).toEqual(["removed"]);
  gate.resolve();
  await world.run(stopped);
  expect(calls).toEqual(["remove", "remove", "stop"]); // The removal of the filter has given the row another epoch.
});
