import { afterEach, expect, it } from "vitest";
import { createDeferred, type Deferred } from "../../lib/deferred.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import type { Attachment, WillOrder } from "../broker.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestEngine } from "../testing/test-engine.ts";
import { withCalls, withSessions } from "../testing/with-sessions.ts";

const will: WillOrder = {
  delayMs: 0,
  call: { topic: "will", groupId: undefined, content: new Uint8Array([1]), extensions: [], mayBeEmpty: true },
  opensTopic: true,
  expiresAfterMs: undefined,
};

const memory = createMemoryStore();
let calls: string[];
let claims: Deferred<void>;
let engine: TestEngine;
afterEach(() => engine.stop());

/** An engine whose claims of sessions wait for {@link claims}. */
async function start(): Promise<void> {
  calls = [];
  claims = createDeferred();
  const store = withSessions(memory, {
    claimSession: async (claim) => {
      await claims.promise;
      calls.push("claim");
      return memory.sessions.claimSession(claim);
    },
  });
  const stop = async (): Promise<void> => {
    calls.push("stop");
    await memory.stop();
  };
  engine = await TestEngine.start({ store: withCalls(store, { stop }) });
  await engine.clock.advance(1_500);
}

function attach(peer: RecordingPeer): Promise<Attachment> {
  const order = { groupId: undefined, protocol: "MQTT" as const, key: "c", isClean: false, windowMax: 10, will };
  return engine.broker.attach({ ...order, expiryMs: 60_000, onConnected: () => {} }, peer);
}

it("a stop waits for an attach in progress before it closes the store, and the session keeps neither connection nor will", async () => {
  await start();
  const peer = new RecordingPeer();
  const attached = attach(peer);
  await engine.clock.settle();
  const stopped = engine.broker.stop(1_000);
  await engine.clock.settle();
  expect(calls).toEqual([]);
  claims.resolve();
  await Promise.all([attached, stopped]);
  expect(calls).toEqual(["claim", "stop"]);
  expect(peer.endedBecause).toBe("stopping");
  await memory.start();
  const [row] = await memory.sessions.listSessions({ after: undefined, limit: 9 });
  expect(row?.session).toMatchObject({ detachedAt: expect.any(Number) as unknown, will: undefined });
});

it("refuses an attach once the broker stops", async () => {
  await start();
  claims.resolve();
  const stopped = engine.broker.stop(1_000);
  await expect(attach(new RecordingPeer())).rejects.toMatchObject({ code: 200300 });
  await stopped;
  expect(calls).toEqual(["stop"]);
});
