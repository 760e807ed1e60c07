import { afterEach, expect, it } from "vitest";
import { createDeferred, type Deferred } from "../../lib/deferred.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import type { Attachment, WillRequest } from "../broker.ts";
import { testCaller } from "../testing/as-caller.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestEngine } from "../testing/test-engine.ts";
import type { Store } from "../../ports/store.ts";
import { withCalls } from "../../lib/with-calls.ts";
import { withSessionCalls } from "../testing/with-session-calls.ts";

const will: WillRequest = {
  delayMs: 0,
  call: { topic: "will", groupId: undefined, content: new Uint8Array([1]), extensions: [], mayBeEmpty: true },
  opensTopic: true,
  expiresAfterMs: undefined,
};

let memory: ReturnType<typeof createMemoryStore>;
let calls: string[];
/** Keys of the sessions whose claims have begun. */
let begun: string[];
let claims: Deferred<void>;
let engine: TestEngine;
afterEach(() => engine.stop());

/** An engine whose claims of sessions wait for {@link claims}. */
async function start(): Promise<void> {
  memory = createMemoryStore();
  calls = [];
  begun = [];
  claims = createDeferred();
  const store = withSessionCalls(memory, {
    claimSession: async (claim) => {
      begun.push(claim.key);
      await claims.promise;
      calls.push("claim");
      return memory.sessions.claimSession(claim);
    },
  });
  const stop = async (): Promise<void> => {
    calls.push("stop");
    await memory.stop();
  };
  const rollBack: Store["rollBack"] = async (...call) => {
    calls.push("rollback");
    return memory.rollBack(...call);
  };
  engine = await TestEngine.start({ store: withCalls(store, { stop, rollBack }), confirmations: 0 });
  await engine.clock.advance(1_500);
}

function attach(peer: RecordingPeer, key = "c", signal = testCaller.signal): Promise<Attachment> {
  const request = { groupId: undefined, protocol: "MQTT" as const, key, isClean: false, windowMax: 10, will };
  const { calls: broker } = engine.running;
  return broker.attach({ ...testCaller, signal }, { ...request, expiryMs: 60_000, onConnected: () => {} }, peer);
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

it("a rollback of the index waits for the five claims that run, and not for those that wait for their turn", async () => {
  await start();
  await engine.broker.open({ topic: "a", groupId: undefined });
  for (const text of ["1", "2"]) await engine.publish("a", text);
  const all = Array.from({ length: 9 }, (_, index) => attach(new RecordingPeer(), `c-${index}`));
  await engine.clock.settle();
  engine.chain.cutBack(engine.chain.head - 1);
  await engine.clock.settle();
  expect(calls).toEqual([]);
  claims.resolve();
  await Promise.all(all);
  expect(calls.indexOf("rollback")).toBe(5);
  expect(calls).toHaveLength(10);
});

it("claims five sessions at once, and none for a connection that has ended", async () => {
  await start();
  const attachesRunningMax = 5;
  const leaving = new AbortController();
  const first = Array.from({ length: attachesRunningMax }, (_, index) => attach(new RecordingPeer(), `first-${index}`));
  await engine.clock.settle();
  const left = attach(new RecordingPeer(), "left", leaving.signal);
  const last = attach(new RecordingPeer(), "last");
  await engine.clock.settle();
  expect(begun).toHaveLength(attachesRunningMax);
  leaving.abort();
  await expect(left).rejects.toMatchObject({ code: 200300 });
  claims.resolve();
  await Promise.all([...first, last]);
  expect(begun.slice(attachesRunningMax)).toEqual(["last"]);
});

/** Begins an attach, which waits for its claim. */
async function attachFirst(): Promise<{ readonly first: RecordingPeer; readonly attached: Promise<Attachment> }> {
  const first = new RecordingPeer();
  const attached = attach(first);
  await engine.clock.settle();
  return { first, attached };
}

it("does not give the session to a connection that ended before its turn", async () => {
  await start();
  const { first, attached } = await attachFirst();
  const leaving = new AbortController();
  const ended = expect(attach(new RecordingPeer(), "c", leaving.signal)).rejects.toMatchObject({ code: 200300 });
  leaving.abort();
  claims.resolve();
  await Promise.all([attached, ended, engine.clock.settle()]);
  expect(begun).toEqual(["c"]);
  expect(first.endedBecause).toBeUndefined();
});

it("when a client connects again, drops its waiting attaches whose connections have ended", async () => {
  await start();
  const { first, attached } = await attachFirst();
  const leaving = new AbortController();
  const dropped = [1, 2].map(() =>
    expect(attach(new RecordingPeer(), "c", leaving.signal)).rejects.toMatchObject({ code: 200300 }),
  );
  leaving.abort();
  const newest = attach(new RecordingPeer());
  await Promise.all(dropped);
  claims.resolve();
  await Promise.all([attached, newest, engine.clock.settle()]);
  expect(begun).toEqual(["c", "c"]);
  expect(first.endedBecause).toBe("taken-over");
  await engine.clock.advance(2_000); // The will of the first connection is published.
});
