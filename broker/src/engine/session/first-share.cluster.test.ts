import { afterEach, beforeEach, expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { lastPosition } from "../../domain/position.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { createDeferred } from "../../lib/deferred.ts";
import type { MemorySessions } from "../../store/memory/memory-sessions.ts";
import type { Caller } from "../access/caller.ts";
import type { Attachment } from "../broker.ts";
import { testCaller } from "../testing/as-caller.ts";
import { publish as publishTo } from "../testing/publish.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestCluster } from "../testing/test-cluster.ts";

// A session that ends with its connection is stored once it joins a share.

let cluster: TestCluster;
let areHintsLost: boolean;
beforeEach(async () => {
  cluster = new TestCluster();
  areHintsLost = false;
  const { coordinator } = cluster.shared;
  const listen = coordinator.listen.bind(coordinator);
  coordinator.listen = (onHint) => listen((hint) => (areHintsLost ? undefined : onHint(hint)));
  for (const index of [0, 1]) cluster.launch(index);
  await cluster.clock.advance(2_000);
  for (const topic of ["a", "b"]) await cluster.run(cluster.node(0).broker.open({ topic, groupId: undefined }));
});
afterEach(() => cluster.stopAll());

/** Attaches a client of the node that does not follow the chain, and subscribes it to `b`. */
async function attach(peer: RecordingPeer, { signal }: Pick<Caller, "signal"> = testCaller): Promise<Attachment> {
  const request = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, windowMax: 10 } as const;
  const rest = { will: undefined, expiryMs: 0, onConnected: () => {} };
  const attachment = await cluster.run(
    cluster.node(1).calls.attach({ ...testCaller, signal }, { ...request, ...rest }, peer),
  );
  await cluster.run(subscribe(attachment, "b"));
  return attachment;
}

function subscribe(attachment: Attachment, text: string, retained?: "always"): Promise<unknown> {
  const options = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  return attachment.subscribe([{ ...options, filter: parseTopicFilter(text), retained }]);
}

async function publish(text: string): Promise<void> {
  await cluster.run(cluster.publish(0, "b", text));
  await cluster.clock.advance(1_000);
}

/** Removes the newest blocks, and lets node 0 roll the index back while node 1 gets no hint. Resolves once the stored index has rolled back. */
async function removeBlocks(count: number): Promise<void> {
  const { store } = cluster.shared;
  const rollBack = store.rollBack.bind(store);
  const rolledBack = createDeferred<void>();
  store.rollBack = async (...call) => {
    store.rollBack = rollBack;
    const done = await rollBack(...call);
    rolledBack.resolve();
    return done;
  };
  areHintsLost = true;
  cluster.chain.cutBack(cluster.chain.head - count);
  await rolledBack.promise;
}

/** Joins a first share while something happens before the store has the filters. */
async function joinDuring(attachment: Attachment, happen: () => Promise<void>): Promise<void> {
  const { sessions } = cluster.shared.store;
  const save = sessions.saveSessionFilters.bind(sessions);
  sessions.saveSessionFilters = async (...call) => {
    sessions.saveSessionFilters = save;
    await happen();
    return save(...call);
  };
  await cluster.run(subscribe(attachment, "$share/s/a"));
}

async function publishRetained(text: string): Promise<void> {
  const content = new TextEncoder().encode(text);
  const call = { topic: "b", groupId: undefined, content, extensions: [["svc-retain", "true"]] } as const;
  await publishTo(cluster.node(0).broker, call);
}

/** Subscribes to `b`, which retains an event. The store finds the event once the given function is called. */
async function subscribeRetained(peer: RecordingPeer): Promise<{ attachment: Attachment; find: () => void }> {
  await cluster.run(publishRetained("removed"));
  await cluster.clock.advance(1_000);
  const { store } = cluster.shared;
  const listRetained = store.listRetained.bind(store);
  const gate = createDeferred<void>();
  store.listRetained = (...call) => gate.promise.then(() => listRetained(...call));
  const attachment = await attach(peer);
  await cluster.run(subscribe(attachment, "b", "always"));
  return { attachment, find: gate.resolve };
}

const textsOf = ({ deliveries }: RecordingPeer): string[] =>
  deliveries.map(({ event }) => new TextDecoder().decode(event.content));

it("if a session's row gets a new epoch while the session joins its first share, keeps the session's other filter", async () => {
  const peer = new RecordingPeer();
  const attachment = await attach(peer);
  await joinDuring(attachment, async () => {
    const [keeper] = cluster.node(0).ids;
    const sessions = cluster.shared.store.sessions as MemorySessions;
    sessions.cutBack(defaultGroupId, lastPosition, keeper); // Changes the rows of node 1 as a rollback by node 0 does.
  });
  await publish("1");
  expect(textsOf(peer)).toEqual(["1"]);
});

it("repeats no acknowledged event to a session if the index rolls back while the session joins its first share", async () => {
  const peer = new RecordingPeer();
  const attachment = await attach(peer);
  for (const text of ["1", "2"]) {
    await publish(text);
    attachment.session.acknowledge(peer.deliveries.at(-1)?.ticket ?? 0);
  }
  cluster.chain.sealEmpty();
  await cluster.clock.advance(1_000);
  const { sessions } = cluster.shared.store;
  const [saveFilters, save] = [sessions.saveSessionFilters.bind(sessions), sessions.saveSessions.bind(sessions)];
  const rolledBack = createDeferred<void>();
  sessions.saveSessionFilters = (...call) => rolledBack.promise.then(() => saveFilters(...call));
  sessions.saveSessions = (...call) => rolledBack.promise.then(() => save(...call));
  const joined = subscribe(attachment, "$share/s/a");
  await cluster.clock.advance(100);
  cluster.chain.cutBack(cluster.chain.head - 1);
  cluster.chain.sealEmpty();
  cluster.chain.sealEmpty();
  await cluster.clock.advance(2_000);
  rolledBack.resolve();
  await cluster.run(joined);
  await publish("3");
  expect(textsOf(peer)).toEqual(["1", "2", "3"]);
});

it("lets a client join its first share while its node has yet to learn of a rollback", async () => {
  const peer = new RecordingPeer();
  const attachment = await attach(peer);
  cluster.chain.sealEmpty();
  await cluster.clock.advance(1_000);
  await cluster.run(removeBlocks(1));
  await cluster.run(subscribe(attachment, "$share/s/a"));
  await publish("1");
  expect(textsOf(peer)).toEqual(["1"]);
});

it("once a client that waits to join its first share has left, stops trying", async () => {
  const leaving = new AbortController();
  const attachment = await attach(new RecordingPeer(), leaving);
  cluster.chain.sealEmpty();
  await cluster.clock.advance(1_000);
  await cluster.run(removeBlocks(1));
  const refused = expect(subscribe(attachment, "$share/s/a")).rejects.toMatchObject({ code: 200_300 });
  await cluster.clock.advance(10);
  attachment.detach({ expiryMs: 0, isRegular: true });
  leaving.abort();
  await refused;
});

it("if another node rolls the index back while a client joins its first share, the client gets the events that replace removed ones", async () => {
  const peer = new RecordingPeer();
  for (let sealed = 0; sealed < 2; sealed += 1) cluster.chain.sealEmpty();
  await cluster.clock.advance(1_000);
  const attachment = await attach(peer);
  await joinDuring(attachment, () => removeBlocks(2));
  await publish("1");
  await publish("2");
  expect(textsOf(peer)).toEqual(["1", "2"]);
});

it("if a rollback removes a retained event while a client joins its first share, the client gets one copy of the topic's new one", async () => {
  const peer = new RecordingPeer();
  const { attachment, find } = await subscribeRetained(peer);
  await joinDuring(attachment, async () => {
    await removeBlocks(1);
    await publishRetained("new");
    cluster.clock.after(100, find); // By then, node 1 has read the session's row.
  });
  await cluster.clock.advance(2_000);
  expect(textsOf(peer)).toEqual(["new"]);
});

it("gives a client without a share one copy of a topic's new retained event if a rollback by another node removed the former one", async () => {
  const peer = new RecordingPeer();
  const { find } = await subscribeRetained(peer);
  await cluster.run(removeBlocks(1).then(() => publishRetained("new")));
  await cluster.clock.advance(1_000); // Node 1 follows the rollback.
  find();
  await cluster.clock.advance(1_000);
  expect(textsOf(peer)).toEqual(["new"]);
});

it("removes a filter that another node removed while the outcome of the session's first share was unknown", async () => {
  const peer = new RecordingPeer();
  const attachment = await attach(peer);
  const { sessions } = cluster.shared.store;
  const save = sessions.saveSessionFilters.bind(sessions);
  sessions.saveSessionFilters = async (...call) => {
    sessions.saveSessionFilters = save;
    await save(...call);
    throw new Error("no connection");
  };
  await expect(cluster.run(subscribe(attachment, "$share/s/a"))).rejects.toThrow("no connection");
  const findFilters = async () => (await sessions.listSessions({ after: undefined, limit: 1 }))[0]?.filters ?? [];
  const { id = "" } = (await findFilters()).find(({ filter }) => String(filter) === "b") ?? {};
  await cluster.run(cluster.unSubscribe(0, id));
  await publish("1");
  await cluster.run(subscribe(attachment, "$share/s/a"));
  expect(textsOf(peer)).toEqual([]);
  expect((await findFilters()).map(({ filter }) => filter)).toEqual(["$share/s/a"]);
});
