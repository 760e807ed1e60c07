import { afterEach, expect, it } from "vitest";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { withCalls } from "../../lib/with-calls.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import type { Attachment } from "../broker.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestEngine } from "../testing/test-engine.ts";
import { withSessions } from "../testing/with-sessions.ts";

let engine: TestEngine;
afterEach(() => engine.stop());

const will = {
  delayMs: 0,
  call: { topic: "will", groupId: undefined, content: new Uint8Array([1]), extensions: [], mayBeEmpty: true },
  opensTopic: true,
  expiresAfterMs: undefined,
};

/** Attaches a session that ends with its connection, and so lives only in memory until its client joins a share. */
async function attach(peer: RecordingPeer): Promise<Attachment> {
  const request = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, windowMax: 10, will } as const;
  const attached = engine.broker.attach({ ...request, expiryMs: 0, onConnected: () => {} }, peer);
  const [attachment] = await Promise.all([attached, engine.clock.settle()]);
  return attachment;
}

function joinShare(attachment: Attachment): Promise<unknown> {
  const options = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  return attachment.subscribe([{ ...options, filter: parseTopicFilter("$share/s/a") }]);
}

it("removes the row of a session whose connection ended while the store began it, and publishes its will once", async () => {
  const memory = createMemoryStore();
  const gate = createDeferred<void>();
  const claimSession: typeof memory.sessions.claimSession = async (claim) => {
    if (claim.isStored) await gate.promise;
    return memory.sessions.claimSession(claim);
  };
  engine = await TestEngine.start({ store: withSessions(memory, { claimSession }) });
  await engine.broker.open({ topic: "a", groupId: undefined });
  const attachment = await attach(new RecordingPeer());
  const joined = Promise.allSettled([joinShare(attachment)]);
  await engine.clock.settle();
  attachment.detach({ expiryMs: 0, isRegular: false });
  gate.resolve();
  await Promise.all([joined, engine.clock.advance(5_000)]);
  expect(await memory.sessions.listSessions({ after: undefined, limit: 9 })).toEqual([]);
  expect(await engine.broker.state({ topic: "will", groupId: undefined })).toMatchObject({ sequence: 1 });
});

it("a stop waits for a change of filters in progress before it closes the store", async () => {
  const memory = createMemoryStore();
  const calls: string[] = [];
  const gate = createDeferred<void>();
  const sessions = withSessions(memory, {
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
