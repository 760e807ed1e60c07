import { BrokerError } from "@stele/wire";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import { createDeferred } from "../../../lib/deferred.ts";
import type { Attachment, AttachRequest, WillRequest } from "../../broker.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestCluster } from "../../testing/test-cluster.ts";

let cluster: TestCluster;
beforeEach(async () => {
  cluster = await TestCluster.start(3);
  await cluster.run(cluster.node(0).broker.open({ topic: "will", groupId: undefined }));
});
afterEach(() => cluster.stopAll());

async function attach(node: number, request: Partial<AttachRequest> = {}): Promise<Attachment> {
  const defaults = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, windowMax: 10 } as const;
  const rest = { will: undefined, expiryMs: 600_000, onConnected: () => {} };
  return cluster.run(cluster.node(node).broker.attach({ ...defaults, ...rest, ...request }, new RecordingPeer()));
}

const will: WillRequest = {
  delayMs: 0,
  call: { topic: "will", groupId: undefined, content: new Uint8Array([1]), extensions: [] },
  opensTopic: false,
  expiresAfterMs: undefined,
};

const rows = () => cluster.shared.store.sessions.listSessions({ after: undefined, limit: 9 });

async function countWills(): Promise<number> {
  return (await cluster.run(cluster.node(0).broker.state({ topic: "will", groupId: undefined }))).sequence;
}

const calls = ["takeDueSession", "settleWill", "removeSession"] as const;
describe.each(calls)("if %s of the sweep", (name) => {
  it.each([
    "does not reach the store",
    "reaches the store, but its answer is lost",
    "comes after a caller has removed a filter of the session",
  ])("%s, the will is published once and the session ends in time", async (how) => {
    const attachment = await attach(1, { will });
    const sessionFilter = {
      filter: parseTopicFilter("a"),
      qos: 1,
      isNoLocal: false,
      isRetainAsPublished: false,
    } as const;
    await cluster.run(attachment.subscribe([{ ...sessionFilter, identifier: undefined }]));
    const { sessions } = cluster.shared.store;
    const call: (...given: never[]) => Promise<unknown> = sessions[name].bind(sessions);
    let isFirst = true;
    const callOnce = async (...given: never[]): Promise<unknown> => {
      if (!isFirst) return call(...given);
      isFirst = false;
      if (how.startsWith("comes")) {
        for (const { filters } of await rows()) for (const { id } of filters) await sessions.removeSessionFilter(id);
        return call(...given);
      }
      if (how.startsWith("reaches")) await call(...given);
      throw new BrokerError("storeUnreachable");
    };
    Object.assign(sessions, { [name]: callOnce });
    attachment.detach({ expiryMs: 30_000, isRegular: false });
    await cluster.clock.advance(60_000);
    expect(isFirst).toBe(false);
    expect(await countWills()).toBe(1);
    expect(await rows()).toHaveLength(0);
  });
});

it("publishes a will once and within ten seconds if a node loses the store's answer about the will's publish key, and lives on", async () => {
  const attachment = await attach(1, { will });
  const { store } = cluster.shared;
  const record = store.recordPublishKeys.bind(store);
  let records = 0;
  store.recordPublishKeys = async (claims) => {
    const taken = await record(claims);
    records += 1;
    if (records === 1) throw new BrokerError("storeUnreachable");
    return taken;
  };
  attachment.detach({ expiryMs: 30_000, isRegular: false });
  await cluster.clock.advance(10_000);
  expect(records).toBeGreaterThan(1);
  expect(await countWills()).toBe(1);
  await cluster.clock.advance(60_000);
  expect(await countWills()).toBe(1);
});

it("publishes each will and ends the session if the store takes the session without an answer while a sweep reads the session's earlier row", async () => {
  const { sessions } = cluster.shared.store;
  const [take, find] = [sessions.takeDueSession.bind(sessions), sessions.findSession.bind(sessions)];
  const reading = createDeferred<void>();
  const keeper = await cluster.findFollower();
  const lose = async (): Promise<void> => {
    const attachment = await attach(keeper, { will });
    attachment.detach({ expiryMs: 30_000, isRegular: false });
    await cluster.clock.settle();
  };
  sessions.takeDueSession = () => Promise.reject(new BrokerError("storeUnreachable"));
  await lose();
  let isRead = false;
  sessions.findSession = async (id) => {
    sessions.findSession = find;
    const row = await find(id);
    isRead = true;
    await reading.promise;
    return row;
  };
  await cluster.clock.advance(1_000);
  expect(isRead).toBe(true);
  let isTaken = false;
  sessions.takeDueSession = async (...call) => {
    sessions.takeDueSession = take;
    isTaken = (await take(...call)) !== undefined;
    throw new BrokerError("storeUnreachable");
  };
  await lose();
  expect(isTaken).toBe(true);
  reading.resolve();
  await cluster.clock.advance(60_000);
  expect(await countWills()).toBe(2);
  expect(await rows()).toHaveLength(0);
});

it("publishes the will and ends the session if the sweep's read fails before it can give the session back", async () => {
  const { sessions } = cluster.shared.store;
  const [take, find] = [sessions.takeDueSession.bind(sessions), sessions.findSession.bind(sessions)];
  const attachment = await attach(await cluster.findFollower(), { will });
  sessions.takeDueSession = async (...call) => {
    sessions.takeDueSession = take;
    await take(...call);
    sessions.findSession = async () => {
      sessions.findSession = find;
      throw new BrokerError("storeUnreachable");
    };
    throw new BrokerError("storeUnreachable");
  };
  attachment.detach({ expiryMs: 30_000, isRegular: false });
  await cluster.clock.advance(60_000);
  expect(sessions.takeDueSession).toBe(take);
  expect(await countWills()).toBe(1);
  expect(await rows()).toHaveLength(0);
});

it("publishes the will once if the answer to a take is lost, and a later sweep finds the session taken while an earlier check still runs", async () => {
  const { sessions } = cluster.shared.store;
  const [take, findTime] = [sessions.takeDueSession.bind(sessions), sessions.findSessionTime.bind(sessions)];
  const [checking, taking] = [createDeferred<void>(), createDeferred<void>()];
  const attachment = await attach(await cluster.findFollower(), { will });
  sessions.findSessionTime = async (groupId) => {
    sessions.findSessionTime = findTime;
    await checking.promise;
    return findTime(groupId);
  };
  const taken: boolean[] = [];
  sessions.takeDueSession = async (...call) => {
    sessions.takeDueSession = async (...late) => {
      sessions.takeDueSession = take;
      await taking.promise;
      const row = await take(...late);
      taken.push(row !== undefined);
      return row;
    };
    taken.push((await take(...call)) !== undefined);
    throw new BrokerError("storeUnreachable");
  };
  attachment.detach({ expiryMs: 30_000, isRegular: false });
  await cluster.clock.advance(1_000);
  expect(taken).toEqual([true]);
  checking.resolve();
  await cluster.clock.advance(2_000);
  taking.resolve();
  await cluster.clock.advance(60_000);
  expect(taken).toEqual([true, false]);
  expect(await countWills()).toBe(1);
  expect(await rows()).toHaveLength(0);
});
