import { afterEach, describe, expect, it } from "vitest";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { withCalls } from "../../lib/with-calls.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import type { Attachment } from "../broker.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestEngine } from "../testing/test-engine.ts";
import { withSessionCalls } from "../testing/with-session-calls.ts";

let engine: TestEngine;
afterEach(() => engine.stop());

const will = {
  delayMs: 0,
  call: { topic: "will", groupId: undefined, content: new Uint8Array([1]), extensions: [], mayBeEmpty: true },
  opensTopic: true,
  expiresAfterMs: undefined,
};

/** Attaches a session that ends with its connection, and so lives only in memory until its client joins a share. */
async function attach(peer: RecordingPeer, key = "c"): Promise<Attachment> {
  const request = { groupId: undefined, protocol: "MQTT", key, isClean: false, windowMax: 10, will } as const;
  const attached = engine.broker.attach({ ...request, expiryMs: 0, onConnected: () => {} }, peer);
  const [attachment] = await Promise.all([attached, engine.clock.settle()]);
  return attachment;
}

function subscribe(attachment: Attachment, text: string): Promise<unknown> {
  const options = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  return attachment.subscribe([{ ...options, filter: parseTopicFilter(text) }]);
}

const joinShare = (attachment: Attachment): Promise<unknown> => subscribe(attachment, "$share/s/a");

/** A client that joins a share. The store begins the row of its session, or fails to, and answers once the gate is open. */
async function joinSlowly(row: "begun" | "failed") {
  const memory = createMemoryStore();
  const gate = createDeferred<void>();
  const claimSession: typeof memory.sessions.claimSession = async (claim) => {
    if (!claim.isStored) return memory.sessions.claimSession(claim);
    const claimed = row === "begun" ? await memory.sessions.claimSession(claim) : undefined;
    await gate.promise;
    if (claimed === undefined) throw new Error("no connection");
    return claimed;
  };
  engine = await TestEngine.start({ store: withSessionCalls(memory, { claimSession }) });
  await engine.broker.open({ topic: "a", groupId: undefined });
  const peer = new RecordingPeer();
  const attachment = await attach(peer);
  const joined = Promise.allSettled([joinShare(attachment)]);
  await engine.clock.settle();
  return { memory, gate, peer, attachment, joined };
}

const lost = { expiryMs: 0, isRegular: false };

async function expectEndedOnce({ memory, joined }: Awaited<ReturnType<typeof joinSlowly>>): Promise<void> {
  await Promise.all([joined, engine.clock.advance(5_000)]);
  expect(await memory.sessions.listSessions({ after: undefined, limit: 9 })).toEqual([]);
  expect(await engine.broker.state({ topic: "will", groupId: undefined })).toMatchObject({ sequence: 1 });
}

describe.each(["begun", "failed"] as const)("a connection that ends before the row of its session has %s", (row) => {
  it("leaves no row, and its will is published once", async () => {
    const joining = await joinSlowly(row);
    joining.attachment.detach(lost);
    joining.gate.resolve();
    await expectEndedOnce(joining);
  });

  it("leaves no row if its client ends the session", async () => {
    const { memory, gate, attachment, joined } = await joinSlowly(row);
    const ended = attachment.end();
    await engine.clock.settle();
    gate.resolve();
    await Promise.all([ended, joined, engine.clock.advance(5_000)]);
    expect(await memory.sessions.listSessions({ after: undefined, limit: 9 })).toEqual([]);
  });

  it.each<[string, (joining: Awaited<ReturnType<typeof joinSlowly>>) => void]>([
    ["comes back", ({ attachment }) => attachment.detach(lost)],
    ["is replaced", () => {}],
    ["is replaced, and it then leaves", ({ peer, attachment }) => (peer.ended = () => attachment.detach(lost))],
  ])("has its will published once, and its session is not resumed, if its client %s", async (_, prepare) => {
    const joining = await joinSlowly(row);
    prepare(joining);
    const again = attach(new RecordingPeer());
    await engine.clock.settle();
    joining.gate.resolve();
    expect(await again).toMatchObject({ isPresent: false });
    await expectEndedOnce(joining);
  });
});

it("a session whose first try to join a share failed keeps its other filter when unSubscribe later removes the share", async () => {
  const memory = createMemoryStore();
  let failures = 1;
  const saveSessionFilters: typeof memory.sessions.saveSessionFilters = async (...call) => {
    if (failures-- > 0) throw new Error("no connection");
    return memory.sessions.saveSessionFilters(...call);
  };
  engine = await TestEngine.start({ store: withSessionCalls(memory, { saveSessionFilters }) });
  for (const topic of ["a", "b"]) await engine.broker.open({ topic, groupId: undefined });
  const peer = new RecordingPeer();
  const attachment = await attach(peer);
  await subscribe(attachment, "b");
  await expect(joinShare(attachment)).rejects.toThrow("no connection");
  await joinShare(attachment);
  const [found] = await memory.sessions.listSessions({ after: undefined, limit: 1 });
  const { id: subscriptionId = "" } = found?.filters.find(({ filter }) => filter.startsWith("$share")) ?? {};
  await engine.broker.unSubscribe({ subscriptionId });
  await engine.publish("b", "text");
  await engine.clock.settle();
  expect(peer.deliveries.map(({ event }) => event.topic)).toEqual(["b"]);
});

it.each([
  ["is writing", { isHeld: true, isLost: false }],
  ["has written without an answer", { isHeld: false, isLost: true }],
  ["is writing without an answer", { isHeld: true, isLost: true }],
])(
  "unSubscribe removes a filter that the store %s because its session joins a first share",
  async (_, { isHeld, isLost }) => {
    const memory = createMemoryStore();
    const gate = createDeferred<void>();
    let answersLost = isLost ? 1 : 0;
    const saveSessionFilters: typeof memory.sessions.saveSessionFilters = async (...call) => {
      if (isHeld) await gate.promise;
      const outcome = await memory.sessions.saveSessionFilters(...call);
      if (answersLost-- > 0) throw new Error("no connection");
      return outcome;
    };
    engine = await TestEngine.start({ store: withSessionCalls(memory, { saveSessionFilters }) });
    for (const topic of ["a", "b"]) await engine.broker.open({ topic, groupId: undefined });
    const attachment = await attach(new RecordingPeer());
    await subscribe(attachment, "b");
    const joined = Promise.allSettled([joinShare(attachment)]);
    await engine.clock.settle();
    const { id: subscriptionId = "" } =
      (await engine.listSubscriptions()).find(({ filter }) => String(filter) === "b") ?? {};
    await engine.broker.unSubscribe({ subscriptionId });
    gate.resolve();
    await Promise.all([joined, engine.clock.advance(1_000)]);
    if (isHeld && isLost) await joinShare(attachment); // Until then the row has the filter, and its session does not.
    const [found] = await memory.sessions.listSessions({ after: undefined, limit: 1 });
    expect(found?.filters.map(({ filter }) => filter)).toEqual(["$share/s/a"]);
  },
);

it("a stop ends a client that attaches late, and does not wait for filter changes of other clients", async () => {
  const memory = createMemoryStore();
  const [saved, claimed] = [createDeferred<void>(), createDeferred<void>()];
  const store = withSessionCalls(memory, {
    saveSessionFilters: async (...call) => {
      await saved.promise;
      return memory.sessions.saveSessionFilters(...call);
    },
    claimSession: async (claim) => {
      if (claim.key === "late") await claimed.promise;
      return memory.sessions.claimSession(claim);
    },
  });
  engine = await TestEngine.start({ store });
  await engine.broker.open({ topic: "a", groupId: undefined });
  const joined = Promise.allSettled([joinShare(await attach(new RecordingPeer()))]);
  const peer = new RecordingPeer();
  const late = attach(peer, "late");
  await engine.clock.settle();
  const stopped = engine.broker.stop(1_000);
  claimed.resolve();
  await Promise.all([late, engine.clock.settle()]);
  expect(peer.endedBecause).toBe("stopping");
  saved.resolve();
  await Promise.all([joined, stopped]);
});

it("a stop waits until a running filter change is saved before it closes the store", async () => {
  const memory = createMemoryStore();
  const calls: string[] = [];
  const gate = createDeferred<void>();
  const sessions = withSessionCalls(memory, {
    saveSessionFilters: async (...call) => {
      await gate.promise;
      calls.push("save");
      return memory.sessions.saveSessionFilters(...call);
    },
  });
  const stop = async (): Promise<void> => {
    calls.push("stop");
    await memory.stop();
  };
  engine = await TestEngine.start({ store: withCalls(sessions, { stop }) });
  await engine.broker.open({ topic: "a", groupId: undefined });
  const joined = Promise.allSettled([joinShare(await attach(new RecordingPeer()))]);
  await engine.clock.settle();
  const stopped = engine.broker.stop(1_000);
  await engine.clock.settle();
  expect(calls).toEqual([]);
  gate.resolve();
  await Promise.all([joined, stopped]);
  expect(calls).toEqual(["save", "stop"]);
});

it("a stop ends a client's wait for the next try to join its first share", async () => {
  const memory = createMemoryStore();
  const calls: string[] = [];
  const sessions = withSessionCalls(memory, {
    saveSessionFilters: async () => {
      calls.push("save");
      return "rolled-back";
    },
  });
  const stop = async (): Promise<void> => {
    calls.push("stop");
    await memory.stop();
  };
  engine = await TestEngine.start({ store: withCalls(sessions, { stop }) });
  await engine.broker.open({ topic: "a", groupId: undefined });
  const joined = expect(joinShare(await attach(new RecordingPeer()))).rejects.toMatchObject({ code: 200_300 });
  await engine.clock.settle();
  await Promise.all([engine.broker.stop(1_000), engine.clock.advance(5_000)]);
  await joined;
  expect(calls).toEqual(["save", "stop"]);
});
