import { BrokerError } from "@stele/wire";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { defaultGroupId } from "../../../domain/group-id.ts";
import { createMemoryLedger } from "../../../ledger/memory/memory-ledger.ts";
import { type Ledger, MayNotStartError } from "../../../ports/ledger.ts";
import type { SessionId } from "../../../ports/session-store.ts";
import { createMemoryStore } from "../../../store/memory/memory-store.ts";
import type { Attachment, AttachRequest, WillRequest } from "../../broker.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestEngine } from "../../testing/test-engine.ts";
import { withSessionCalls } from "../../testing/with-session-calls.ts";

const request: AttachRequest = {
  groupId: defaultGroupId,
  protocol: "MQTT",
  key: "c",
  isClean: false,
  windowMax: 10,
  will: undefined,
  expiryMs: 86_400_000,
  onConnected: () => {},
};

it("does not keep a timer for each former connection of a long-lived session", async () => {
  const engine = await TestEngine.start();
  const connect = async (): Promise<void> => {
    const attached = engine.broker.attach(request, new RecordingPeer());
    const [attachment] = await Promise.all([attached, engine.clock.settle()]);
    attachment.detach({ expiryMs: request.expiryMs, isRegular: true });
    await engine.clock.advance(100);
  };
  await connect();
  const before = engine.clock.timers;
  for (let count = 0; count < 20; count += 1) await connect();
  expect(engine.clock.timers).toBeLessThan(before + 5);
  await engine.stop();
});

const will: WillRequest = {
  delayMs: 0,
  call: { topic: "will", groupId: undefined, content: new Uint8Array([1]), extensions: [] },
  opensTopic: false,
  expiresAfterMs: undefined,
};

it("a will is refused if its extensions leave no room for those that the broker adds when it publishes the will", async () => {
  const engine = await TestEngine.start({ limits: { extensionsBytesMax: 200 } });
  await engine.broker.open({ topic: "will", groupId: undefined });
  const connect = async (length: number): Promise<void> => {
    const extensions = [["svc-x", "x".repeat(length)]] as const;
    const own = { ...will, call: { ...will.call, extensions }, expiresAfterMs: 60_000 };
    const attached = engine.broker.attach({ ...request, will: own }, new RecordingPeer());
    const [attachment] = await Promise.all([attached, engine.clock.settle()]);
    attachment.detach({ expiryMs: request.expiryMs, isRegular: false });
    await engine.clock.advance(1_000);
  };
  let published = 0;
  for (let length = 100; length < 200; length += 1) {
    const outcome = await connect(length).then(
      () => "accepted",
      (error: unknown) => error,
    );
    if (outcome === "accepted") published += 1;
    else expect(outcome).toMatchObject({ code: 100_204 });
  }
  expect(published).toBeGreaterThan(0);
  expect((await engine.broker.state({ topic: "will", groupId: undefined })).sequence).toBe(published);
  await engine.stop();
});

it.each([
  ["lost", false],
  ["taken over", false],
  ["taken over by a clean one", true],
])(
  "publishes every will of a client whose connection is %s again and again, although the broker keeps at most two publish keys",
  async (how, isClean) => {
    const engine = await TestEngine.start({ limits: { publishKeysMax: 2, publishKeysPerSessionMax: 2 } });
    await engine.broker.open({ topic: "will", groupId: undefined });
    const connect = async (): Promise<Attachment> => {
      const attached = engine.broker.attach({ ...request, isClean, will }, new RecordingPeer());
      const [attachment] = await Promise.all([attached, engine.clock.settle()]);
      return attachment;
    };
    let attachment = await connect();
    for (let count = 0; count < 10; count += 1) {
      if (how === "lost") attachment.detach({ expiryMs: request.expiryMs, isRegular: false });
      await engine.clock.advance(2_000);
      attachment = await connect();
    }
    await engine.clock.advance(2_000);
    expect((await engine.broker.state({ topic: "will", groupId: undefined })).sequence).toBe(10);
    await engine.stop();
  },
);

it("publishes a will although callers have used up the room for publish keys", async () => {
  const engine = await TestEngine.start({ limits: { publishKeysMax: 10 } });
  await engine.broker.open({ topic: "will", groupId: undefined });
  for (let count = 0; count < 11; count += 1) {
    engine.broker.submit({ ...will.call, key: `k${count}` }, () => {});
    await engine.clock.advance(1_000);
  }
  const { sequence } = await engine.broker.state({ topic: "will", groupId: undefined });
  expect(sequence).toBe(10);
  const attached = engine.broker.attach({ ...request, will }, new RecordingPeer());
  const [attachment] = await Promise.all([attached, engine.clock.settle()]);
  attachment.detach({ expiryMs: request.expiryMs, isRegular: false });
  await engine.clock.advance(5_000);
  expect((await engine.broker.state({ topic: "will", groupId: undefined })).sequence).toBe(11);
  await engine.stop();
});

describe.each([
  ["busy", new BrokerError("busy")],
  ["chainUnreachable", new BrokerError("chainUnreachable")],
  ["storeUnreachable", new BrokerError("storeUnreachable")],
  [
    "transactionFailed after a lost membership",
    new BrokerError("transactionFailed", { cause: new MayNotStartError() }),
  ],
])("a will whose publish was refused with %s", (_refusal, refusal) => {
  it.each([
    ["lost", "in the store", request.expiryMs],
    ["taken over", "in the store", request.expiryMs],
    ["lost", "only in memory", 0],
    ["taken over", "only in memory", 0],
  ])("is published once, later, when its connection was %s and its session %s", async (how, _, expiryMs) => {
    let refuses = false;
    const append: Ledger["append"] = async (...call) => {
      if (refuses) throw refusal;
      return ledger.append(...call);
    };
    const engine = await TestEngine.start({ append });
    const ledger = createMemoryLedger({ groupId: defaultGroupId, chain: engine.chain, isFinal: true });
    await ledger.start();
    await engine.broker.open({ topic: "will", groupId: undefined });
    const attached = engine.broker.attach({ ...request, expiryMs, will }, new RecordingPeer());
    const [attachment] = await Promise.all([attached, engine.clock.settle()]);
    refuses = true;
    if (how === "lost") attachment.detach({ expiryMs, isRegular: false });
    else await Promise.all([engine.broker.attach(request, new RecordingPeer()), engine.clock.settle()]);
    await engine.clock.advance(20_000);
    refuses = false;
    await engine.clock.advance(20_000);
    expect((await engine.broker.state({ topic: "will", groupId: undefined })).sequence).toBe(1);
    await engine.stop();
  });
});

describe("a will of a session only in memory that a busy broker refused", () => {
  let refuses = false;
  const append: Ledger["append"] = async (...call) => {
    if (refuses) throw new BrokerError("busy");
    return ledger.append(...call);
  };
  let engine: TestEngine;
  let ledger: Ledger;
  beforeEach(async () => {
    engine = await TestEngine.start({ append });
    ledger = createMemoryLedger({ groupId: defaultGroupId, chain: engine.chain, isFinal: true });
    await ledger.start();
    await engine.broker.open({ topic: "will", groupId: undefined });
  });
  afterEach(() => engine.stop());

  async function connect(given: Partial<AttachRequest>): Promise<Attachment> {
    const attached = engine.broker.attach({ ...request, expiryMs: 0, ...given }, new RecordingPeer());
    const [attachment] = await Promise.all([attached, engine.clock.settle()]);
    return attachment;
  }

  async function loseBusy(delayMs: number): Promise<void> {
    const attachment = await connect({ will: { ...will, delayMs } });
    refuses = true;
    attachment.detach({ expiryMs: 0, isRegular: false });
  }

  it("is dropped if the client comes back within the delay of its will", async () => {
    await loseBusy(5_000);
    await engine.clock.advance(4_900);
    await connect({});
    refuses = false;
    await engine.clock.advance(20_000);
    expect((await engine.broker.state({ topic: "will", groupId: undefined })).sequence).toBe(0);
  });

  it("is published if the client comes back after the delay, before the events of the new connection", async () => {
    await loseBusy(100);
    await engine.clock.advance(500);
    refuses = false;
    await connect({});
    const [eventId] = await Promise.all([engine.publish("will", "back"), engine.clock.settle()]);
    expect(eventId).toMatch(/^[0-9a-f]{8}-2-/);
  });
});

it("a will of a session only in memory is not published again if its publish times out", async () => {
  let isDeaf = false;
  const append: Ledger["append"] = async (batches, signal, options) => {
    const outcomes = await ledger.append(batches, signal, options);
    if (!isDeaf) return outcomes;
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    throw new BrokerError("transactionTimeout");
  };
  const engine = await TestEngine.start({ append });
  const ledger = createMemoryLedger({ groupId: defaultGroupId, chain: engine.chain, isFinal: true });
  await ledger.start();
  await engine.broker.open({ topic: "will", groupId: undefined });
  isDeaf = true;
  const attached = engine.broker.attach({ ...request, expiryMs: 0, will }, new RecordingPeer());
  const [attachment] = await Promise.all([attached, engine.clock.settle()]);
  attachment.detach({ expiryMs: 0, isRegular: false });
  await engine.clock.advance(100_000);
  isDeaf = false;
  await engine.clock.advance(20_000);
  expect((await engine.broker.state({ topic: "will", groupId: undefined })).sequence).toBe(1);
  await engine.stop();
});

it.each([
  ["only in memory wait for another try, up to 4 MiB", 0, 63],
  ["in the store wait for another try, up to 4 MiB and one more for each session", 600_000, 51],
])("wills of replaced connections whose session is %s", async (_, expiryMs, publishedCount) => {
  let refuses = true;
  const append: Ledger["append"] = async (...call) => {
    if (refuses) throw new BrokerError("chainUnreachable");
    return ledger.append(...call);
  };
  const engine = await TestEngine.start({ append });
  const ledger = createMemoryLedger({ groupId: defaultGroupId, chain: engine.chain, isFinal: true });
  await ledger.start();
  await engine.broker.open({ topic: "will", groupId: undefined });
  const long = { ...will, call: { ...will.call, content: new Uint8Array(65_536) } };
  for (let count = 0; count < 84; count += 1) {
    const key = String(count % 4);
    const attached = engine.broker.attach({ ...request, key, expiryMs, will: long }, new RecordingPeer());
    await Promise.all([attached, engine.clock.settle()]);
  }
  refuses = false;
  await engine.clock.advance(20_000);
  expect((await engine.broker.state({ topic: "will", groupId: undefined })).sequence).toBe(publishedCount);
  await engine.stop();
});

it("drops damaged sessions that are due, and ends the other due sessions after them", async () => {
  const memory = createMemoryStore();
  const damaged = new Set<SessionId>();
  const findSession = async (id: SessionId) => (damaged.has(id) ? undefined : memory.sessions.findSession(id));
  const engine = await TestEngine.start({ store: withSessionCalls(memory, { findSession }) });
  const expiryMs = 20_000;
  for (let count = 0; count < 150; count += 1) {
    const attached = engine.broker.attach({ ...request, expiryMs, key: String(count) }, new RecordingPeer());
    const [attachment] = await Promise.all([attached, engine.clock.settle()]);
    if (count < 120) damaged.add(attachment.session.id as SessionId); // A session's identifier.
    attachment.detach({ expiryMs, isRegular: true });
    await engine.clock.advance(10);
  }
  await engine.clock.advance(expiryMs + 5_000);
  expect(await memory.sessions.listSessions({ after: undefined, limit: 200 })).toEqual([]);
  await engine.stop();
});

it("a broker on a restored backup publishes no will and ends no stored session until it is activated", async () => {
  const engine = await TestEngine.start();
  await engine.broker.open({ topic: "will", groupId: undefined });
  const attached = engine.broker.attach({ ...request, will: { ...will, delayMs: 5_000 } }, new RecordingPeer());
  const [attachment] = await Promise.all([attached, engine.clock.settle()]);
  attachment.detach({ expiryMs: 10_000, isRegular: false });
  await engine.clock.settle();
  const sequence = async () => (await engine.broker.state({ topic: "will", groupId: undefined })).sequence;
  const detached = () => engine.store.sessions.listDetached(defaultGroupId, 9);
  for (const isRestored of [true, false]) {
    engine.isRestored = isRestored;
    await engine.rebuild();
    await engine.broker.start();
    await engine.clock.advance(60_000);
    expect([await sequence(), (await detached()).length]).toEqual(isRestored ? [0, 1] : [1, 0]);
  }
  await engine.stop();
});
