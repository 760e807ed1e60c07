import { errorCatalogue } from "@stele/wire";
import { afterEach, beforeEach, expect, it } from "vitest";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import type { Attachment } from "../broker.ts";
import { testCaller } from "../testing/as-caller.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestCluster } from "../testing/test-cluster.ts";
import { TestEngine } from "../testing/test-engine.ts";
import type { SessionsCall } from "./calls.ts";

const order = { groupId: undefined, isClean: false, windowMax: 10, will: undefined, onConnected: () => {} } as const;
const page = { after: undefined, limit: 50 };

let engine: TestEngine;
beforeEach(async () => {
  engine = await TestEngine.start();
  for (const topic of ["a", "b"]) await engine.broker.open({ topic, groupId: undefined });
});
afterEach(() => engine.stop());

interface Attached {
  readonly peer: RecordingPeer;
  readonly attachment: Attachment;
  readonly id: string;
}

async function attach(protocol: "MQTT" | "STOMP", expiryMs: number, ...filters: string[]): Promise<Attached> {
  const peer = new RecordingPeer();
  const key = `${protocol} ${expiryMs} ${filters.join()}`;
  const attaching = engine.broker.attach({ ...order, protocol, key, expiryMs }, peer);
  const [attachment] = await Promise.all([attaching, engine.clock.settle()]);
  await subscribe(attachment, filters);
  return { peer, attachment, id: attachment.session.id };
}

async function subscribe(attachment: Attachment, filters: readonly string[]): Promise<void> {
  const rest = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  await attachment.subscribe(filters.map((text) => ({ ...rest, filter: parseTopicFilter(text) })));
}

async function search(call: SessionsCall): Promise<readonly string[]> {
  const { items } = await engine.broker.operator.searchSessions(testCaller, call, page);
  return items.map(({ session }) => session.id);
}

const get = (id: string) => engine.broker.operator.getSession(testCaller, id);

async function publish(...topics: readonly string[]): Promise<void> {
  for (const topic of topics) await engine.publish(topic, "x");
  await engine.clock.settle();
}

it("finds sessions by protocol, group, connection, owner, node and lag", async () => {
  const stored = await attach("MQTT", 60_000, "a");
  const passing = await attach("MQTT", 0, "b");
  const stomp = await attach("STOMP", 60_000, "a", "b");
  await publish("a", "b", "b");
  stored.attachment.detach({ expiryMs: 60_000, isRegular: true });
  await engine.clock.settle();
  const all = [stored.id, passing.id, stomp.id].toSorted();
  expect(await search({})).toEqual(all);
  expect(await search({ kind: "MQTT" })).toEqual([stored.id, passing.id].toSorted());
  expect(await search({ kind: "STOMP" })).toEqual([stomp.id]);
  expect(await search({ groupId: "1" })).toEqual(all);
  expect(await search({ isConnected: false })).toEqual([stored.id]);
  expect(await search({ isConnected: true, kind: "MQTT" })).toEqual([passing.id]);
  expect(await search({ owner: "somebody" })).toEqual([]);
  expect(await search({ owner: "anonymous" })).toEqual(all);
  expect(await search({ node: "elsewhere:1" })).toEqual([]);
  expect(await search({ lagMin: 2 })).toEqual([passing.id, stomp.id].toSorted());
  expect(await search({ lagMin: 3 })).toEqual([stomp.id]);
  expect(await search({ lagMin: 4 })).toEqual([]);
});

it("lists stored sessions and others together, page by page", async () => {
  const ids: string[] = [];
  for (const expiryMs of [60_000, 0, 60_001, 0]) ids.push((await attach("MQTT", expiryMs, `a/${ids.length}`)).id);
  const seen: string[] = [];
  for (let after: string | undefined, isMore = true; isMore; isMore = after !== undefined) {
    const found = await engine.broker.operator.searchSessions(testCaller, { kind: "MQTT" }, { after, limit: 1 });
    seen.push(...found.items.map(({ session }) => session.id));
    after = found.next;
  }
  expect(seen).toEqual(ids.toSorted());
});

it.each([60_000, 0])(
  "shows how many events a session with an expiry of %d ms has not acknowledged, and since when the oldest waits",
  async (expiryMs) => {
    const { attachment, peer, id } = await attach("MQTT", expiryMs, "a", "b");
    expect(await get(id)).toMatchObject({ lag: 0, waitingSince: undefined, isConnected: true });
    const times: number[] = [];
    for (const topic of ["a", "b", "a"]) {
      await engine.clock.advance(10_000);
      times.push(engine.clock.now());
      await publish(topic);
    }
    expect(await get(id)).toMatchObject({ lag: 3, waitingSince: times[0] });
    attachment.session.acknowledge(peer.deliveries[0]?.ticket ?? 0);
    const view = await get(id);
    expect(view).toMatchObject({ lag: 2, waitingSince: times[1], session: { protocol: "MQTT" } });
    const list = await engine.broker.operator.searchSessions(testCaller, {}, { after: undefined, limit: 1 });
    expect(list.items).toEqual([view]);
    expect(view.filters.map(({ filter }) => filter)).toEqual(["a", "b"]);
  },
);

it.each([60_000, 0])(
  "counts the unacknowledged events of a share for each member, if one member's session has an expiry of %d ms",
  async (expiryMs) => {
    const [one, other] = [await attach("MQTT", expiryMs, "$share/s/a"), await attach("STOMP", expiryMs, "$share/s/a")];
    await publish("a", "a", "a");
    for (const { id } of [one, other]) expect(await get(id)).toMatchObject({ lag: 3 });
    for (const { peer, attachment } of [one, other]) {
      for (const { ticket } of peer.deliveries) attachment.session.acknowledge(ticket ?? 0);
    }
    await engine.clock.advance(1_000);
    for (const { id } of [one, other]) expect(await get(id)).toMatchObject({ lag: 0, waitingSince: undefined });
    expect(await search({ lagMin: 1 })).toEqual([]);
  },
);

it("any node names the node to which a session is connected", async () => {
  const cluster = await TestCluster.start(2);
  try {
    const attaching = cluster
      .node(0)
      .broker.attach({ ...order, protocol: "MQTT", key: "c", expiryMs: 60_000 }, new RecordingPeer());
    const [{ session }] = await Promise.all([attaching, cluster.clock.settle()]);
    for (const { broker } of cluster.nodes) {
      const view = await broker.operator.getSession(testCaller, session.id);
      expect(view).toMatchObject({ node: cluster.node(0).address, isConnected: true });
      const call = { node: cluster.node(0).address };
      expect((await broker.operator.searchSessions(testCaller, call, page)).items).toHaveLength(1);
    }
  } finally {
    await cluster.stopAll();
  }
});

it.each(["", "zzz", "\0", "00000000-0000-4000-8000-00000000000A"])(
  "refuses %j as the cursor of a page and as the identifier of a session",
  async (after) => {
    const refused = { code: errorCatalogue.parameterInvalid.code };
    const list = engine.broker.operator.searchSessions(testCaller, {}, { after, limit: 1 });
    await expect(list).rejects.toMatchObject(refused);
    await expect(get(after)).rejects.toMatchObject(refused);
  },
);

it("refuses the identifier of an unknown session, and an owner with a NUL character", async () => {
  const { code } = errorCatalogue.sessionNotExist;
  await expect(get("00000000-0000-4000-8000-0000000000ff")).rejects.toMatchObject({ code });
  await expect(search({ owner: "\0" })).rejects.toMatchObject({ code: errorCatalogue.parameterInvalid.code });
});
