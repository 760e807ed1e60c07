import { BrokerError } from "@stele/wire";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { WillRequest } from "../../broker.ts";
import { createDeferred } from "../../../lib/deferred.ts";
import type { SessionId } from "../../../ports/session-store.ts";
import { contentsOnChain } from "../../testing/contents-on-chain.ts";
import { LeavingPeer } from "../../testing/leaving-peer.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestCluster } from "../../testing/test-cluster.ts";

let cluster: TestCluster;
beforeEach(async () => {
  cluster = await TestCluster.start(2);
  await cluster.run(cluster.node(0).broker.open({ topic: "wills", groupId: undefined }));
});
afterEach(() => cluster.stopAll());

const will: WillRequest = {
  delayMs: 0,
  call: { topic: "wills", groupId: undefined, content: new TextEncoder().encode("gone"), extensions: [] },
  opensTopic: false,
  expiresAfterMs: undefined,
};

it("publishes a will once if its node is killed right after it recorded the will's publish key, and restarts before its membership expires", async () => {
  const request = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, windowMax: 10 } as const;
  const rest = { will, expiryMs: 600_000, onConnected: () => {} };
  const keeper = await cluster.findFollower();
  const attached = cluster.node(keeper).broker.attach({ ...request, ...rest }, new RecordingPeer());
  const attachment = await cluster.run(attached);
  const { store } = cluster.shared;
  const record = store.recordPublishKeys.bind(store);
  store.recordPublishKeys = async (claims) => {
    store.recordPublishKeys = record;
    const taken = await record(claims);
    cluster.kill(keeper);
    return taken;
  };
  attachment.detach({ expiryMs: 600_000, isRegular: false });
  await cluster.clock.advance(100);
  expect(cluster.nodes).toHaveLength(1);
  cluster.launch(keeper);
  await cluster.clock.advance(120_000);
  expect(contentsOnChain(cluster)).toEqual(["gone"]);
});

it.each([
  ["another node", 1],
  ["the same node", 0],
])("publishes a connection's will if %s claimed the session and was killed at once", async (_, step) => {
  const request = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, windowMax: 10 } as const;
  const rest = { expiryMs: 600_000, onConnected: () => {} };
  const keeper = await cluster.findFollower();
  const taker = (keeper + step) % 2;
  await cluster.run(cluster.node(keeper).broker.attach({ ...request, ...rest, will }, new RecordingPeer()));
  const { sessions } = cluster.shared.store;
  const claim = sessions.claimSession.bind(sessions);
  sessions.claimSession = async (claimed) => {
    sessions.claimSession = claim;
    const answer = await claim(claimed);
    cluster.kill(taker);
    return answer;
  };
  void cluster.node(taker).broker.attach({ ...request, ...rest, will: undefined }, new RecordingPeer());
  await cluster.clock.advance(60_000);
  expect(contentsOnChain(cluster)).toEqual(["gone"]);
});

it.each([
  ["another node", 1],
  ["the same node", 0],
])("publishes a connection's will if %s claimed the session and lost the store's answer", async (_, step) => {
  const request = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, windowMax: 10 } as const;
  const rest = { expiryMs: 600_000, onConnected: () => {} };
  const keeper = await cluster.findFollower();
  await cluster.run(cluster.node(keeper).broker.attach({ ...request, ...rest, will }, new RecordingPeer()));
  const { sessions } = cluster.shared.store;
  const claim = sessions.claimSession.bind(sessions);
  sessions.claimSession = async (claimed) => {
    sessions.claimSession = claim;
    await claim(claimed);
    throw new BrokerError("storeUnreachable");
  };
  const { broker } = cluster.node((keeper + step) % 2);
  const attached = broker.attach({ ...request, ...rest, will: undefined }, new RecordingPeer());
  await expect(cluster.run(attached)).rejects.toMatchObject({ code: 200207 });
  await cluster.clock.advance(60_000);
  expect(contentsOnChain(cluster)).toEqual(["gone"]);
});

it.each(["before", "after"])(
  "a node keeps a will that it is publishing, even if another attach fails (%s the answer to the will's claim)",
  async (when) => {
    const request = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, windowMax: 10 } as const;
    const rest = { expiryMs: 600_000, onConnected: () => {} };
    const { broker } = cluster.node(await cluster.findFollower());
    const { store } = cluster.shared;
    await cluster.run(broker.attach({ ...request, ...rest, will }, new RecordingPeer()));
    const record = store.recordPublishKeys.bind(store);
    const recording = createDeferred<void>();
    store.recordPublishKeys = async (claims) => {
      await recording.promise;
      return record(claims);
    };
    const claim = store.sessions.claimSession.bind(store.sessions);
    const answering = createDeferred<void>();
    store.sessions.claimSession = async (claimed) => {
      // Sorts before the session's id: the search of LostAttaches must meet the will's row before the session's own row, where it waits for the lock.
      const willId = "00000000-0000-4000-8000-000000000000" as SessionId;
      const answer = await claim({ ...claimed, willId });
      if (claimed.key === "lost") throw new BrokerError("storeUnreachable");
      if (when === "before") await answering.promise;
      return answer;
    };
    const attached = broker.attach({ ...request, ...rest, will: undefined }, new RecordingPeer());
    await cluster.clock.advance(100);
    const lost = broker.attach({ ...request, ...rest, key: "lost", will: undefined }, new RecordingPeer());
    await expect(cluster.run(lost)).rejects.toMatchObject({ code: 200207 });
    await cluster.clock.advance(4_000);
    answering.resolve();
    await cluster.run(attached);
    await cluster.clock.advance(1_500);
    const rows = await store.sessions.listSessions({ after: undefined, limit: 9 });
    const { session } = rows.find(({ session: { key } }) => key === "will c") ?? {};
    expect(session).toMatchObject({ owner: expect.any(String) as unknown, epoch: 0 });
    recording.resolve();
    await cluster.clock.advance(60_000);
    expect(contentsOnChain(cluster)).toEqual(["gone"]);
  },
);

it.each([
  { taker: "another node", step: 1, delayMs: 0, cutOffMs: 5_500 },
  { taker: "another node", step: 1, delayMs: 0, cutOffMs: 9_000 },
  { taker: "the same node", step: 0, delayMs: 0, cutOffMs: 5_500 },
  { taker: "the same node", step: 0, delayMs: 0, cutOffMs: 9_000 },
  { taker: "the same node", step: 0, delayMs: 20_000, cutOffMs: 5_500 },
])(
  "publishes a connection's will if $taker claimed the session and was then cut off for $cutOffMs ms (will delay: $delayMs ms)",
  async ({ step, delayMs, cutOffMs }) => {
    const request = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, windowMax: 10 } as const;
    const rest = { expiryMs: 600_000, onConnected: () => {} };
    const keeper = await cluster.findFollower();
    const peer = new LeavingPeer({ isRegular: false });
    const own = { ...request, ...rest, will: { ...will, delayMs } };
    peer.attachment = await cluster.run(cluster.node(keeper).broker.attach(own, peer));
    const { gate, broker } = cluster.node((keeper + step) % 2);
    const { sessions } = cluster.shared.store;
    const claim = sessions.claimSession.bind(sessions);
    sessions.claimSession = async (claimed) => {
      sessions.claimSession = claim;
      const answer = await claim(claimed);
      gate.cut("refused");
      await new Promise<void>((resolve) => void cluster.clock.after(cutOffMs, resolve));
      gate.heal();
      return answer;
    };
    const attached = broker.attach({ ...request, ...rest, will: undefined }, new RecordingPeer());
    await expect(cluster.run(attached)).rejects.toMatchObject({ code: 200207 });
    await cluster.clock.advance(60_000);
    expect(contentsOnChain(cluster)).toEqual(["gone"]);
  },
);
