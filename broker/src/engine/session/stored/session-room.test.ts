import { BrokerError } from "@stele/wire";
import { afterEach, expect, it } from "vitest";
import type { Store } from "../../../ports/store.ts";
import { createMemoryStore } from "../../../store/memory/memory-store.ts";
import type { Attachment, AttachRequest, WillRequest } from "../../broker.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestEngine, type TestEngineOptions } from "../../testing/test-engine.ts";

let engine: TestEngine;
let store: Store;
afterEach(() => engine.stop());

async function start(sessionsMax: number, options: TestEngineOptions = {}): Promise<void> {
  store = createMemoryStore();
  engine = await TestEngine.start({ limits: { sessionsMax }, store, ...options });
  await engine.clock.advance(1_500);
}

async function attach(key: string, request: Partial<AttachRequest> = {}): Promise<Attachment> {
  const defaults = { groupId: undefined, protocol: "MQTT" as const, isClean: false, windowMax: 10, will: undefined };
  const rest = { expiryMs: 86_400_000, onConnected: () => {} };
  const attached = engine.broker.attach({ key, ...defaults, ...rest, ...request }, new RecordingPeer());
  const [attachment] = await Promise.all([attached, engine.clock.settle()]);
  return attachment;
}

async function visit(key: string, request: Partial<AttachRequest> = {}): Promise<void> {
  (await attach(key, request)).detach({ expiryMs: 86_400_000, isRegular: false });
  await engine.clock.settle();
}

async function keys(): Promise<readonly string[]> {
  const all = await store.sessions.listSessions({ after: undefined, limit: 1_000 });
  return all.map(({ session }) => session.key).toSorted();
}

const will: WillRequest = {
  delayMs: 50_000_000,
  call: { topic: "will", groupId: undefined, content: new Uint8Array([1]), extensions: [], mayBeEmpty: true },
  opensTopic: true,
  expiresAfterMs: undefined,
};

async function refuse(): Promise<never> {
  throw new BrokerError("chainUnreachable");
}

it("ends the sessions that have been disconnected longest and publishes their wills, but ends no connected session", async () => {
  await start(2);
  const connected = await attach("connected");
  await visit("1", { will });
  await engine.clock.advance(10);
  await visit("2");
  await engine.clock.advance(10);
  await visit("1", { will }); // Now session 1 has lost its connection after session 2.
  await engine.clock.advance(10);
  await visit("3");
  await engine.clock.advance(2_000);
  expect(await keys()).toEqual(["1", "3", "connected"]);
  expect(await engine.broker.exist({ topic: "will", groupId: undefined })).toBe(false);
  await visit("4");
  await engine.clock.advance(2_000);
  expect(await keys()).toEqual(["3", "4", "connected"]);
  expect(await engine.broker.exist({ topic: "will", groupId: undefined })).toBe(true);
  connected.detach({ expiryMs: 0, isRegular: true });
});

it("does no work for other sessions while a client connects", async () => {
  await start(1);
  await visit("1");
  await visit("2");
  const calls: string[] = [];
  const { sessions } = store;
  for (const name of ["claimSession", "listDetached", "countDetached", "takeDueSession", "removeSession"] as const) {
    const call: (...args: never[]) => unknown = sessions[name].bind(sessions);
    Object.assign(sessions, { [name]: (...args: never[]) => (calls.push(name), call(...args)) });
  }
  await attach("3");
  expect(calls).toEqual(["claimSession"]);
});

it("refuses new sessions while clients come faster than the oldest sessions can end, but admits clients that have a session", async () => {
  await start(1);
  for (let count = 0; count < 101; count += 1) await visit(String(count));
  await expect(attach("another")).rejects.toMatchObject({ code: 200300 });
  await engine.clock.advance(10);
  await visit("7");
  await engine.clock.advance(2_000);
  expect(await keys()).toEqual(["7"]);
  await attach("another");
});

it("ends no disconnected session, and refuses no client, because of wills that wait for the chain", async () => {
  await start(4, { append: refuse });
  for (const key of ["1", "2", "3"]) await visit(key);
  const due = { ...will, delayMs: 0 };
  for (let count = 0; count < 300; count += 1) await attach(`c${count % 4}`, { will: due });
  await engine.clock.advance(2_000);
  expect(await keys()).toEqual(["1", "2", "3", "c0", "c1", "c2", "c3"]);
});

it("counts sessions of an earlier process towards the limit", async () => {
  await start(10);
  for (const key of ["1", "2", "3"]) await visit(key);
  await engine.stop();
  engine = await TestEngine.start({ limits: { sessionsMax: 1 }, store, chain: engine.chain });
  await engine.clock.advance(2_000);
  expect(await keys()).toEqual(["3"]);
});
