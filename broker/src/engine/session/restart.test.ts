import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import type { Store } from "../../ports/store.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import type { Attachment, AttachRequest, WillRequest } from "../broker.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestEngine } from "../testing/test-engine.ts";

let store: Store;
/** Whether the process of the broker was killed: its later calls do not reach the store. */
let gate = { isKilled: false };
let engine: TestEngine;

/** The store as the current broker sees it. After a kill, calls of that broker never end. */
function gated(): Store {
  const own = gate;
  const never = new Promise<never>(() => {});
  const wrap = <Part extends object>(part: Part): Part =>
    new Proxy(part, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target);
        if (name === "sessions" || name === "shares") return wrap(member as object); // Parts of the store.
        if (typeof member !== "function") return member;
        return (...args: unknown[]) => (own.isKilled ? never : (Reflect.apply(member, target, args) as unknown));
      },
    });
  return wrap(store);
}

/** Kills the broker at once, and starts another on the same chain and store. */
async function kill(): Promise<void> {
  gate.isKilled = true;
  gate = { isKilled: false };
  engine = await TestEngine.start({ chain: engine.chain, store: gated() });
}

beforeEach(async () => {
  store = createMemoryStore();
  gate = { isKilled: false };
  engine = await TestEngine.start({ store: gated() });
  await engine.broker.open({ topic: "a", groupId: undefined });
});
afterEach(() => engine.stop());

async function attach(peer: RecordingPeer, request: Partial<AttachRequest> = {}): Promise<Attachment> {
  const defaults = { groupId: undefined, protocol: "MQTT" as const, key: "c", isClean: false, windowMax: 10 };
  const rest = { will: undefined, expiryMs: 60_000, onConnected: () => {} };
  const attached = engine.broker.attach({ ...defaults, ...rest, ...request }, peer);
  const [attachment] = await Promise.all([attached, engine.clock.settle()]);
  return attachment;
}

async function subscribe(attachment: Attachment, qos: 0 | 1 | 2): Promise<void> {
  const filter = parseTopicFilter("a");
  await attachment.subscribe([{ filter, qos, isNoLocal: false, isRetainAsPublished: false, identifier: undefined }]);
}

async function publish(text: string, qos = 1): Promise<void> {
  const call = { topic: "a", groupId: undefined, content: new TextEncoder().encode(text) };
  engine.broker.submit({ ...call, extensions: [["svc-qos", String(qos)]] }, () => {});
  await engine.clock.advance(100);
}

const texts = ({ deliveries }: RecordingPeer): string[] =>
  deliveries.map(({ event }) => new TextDecoder().decode(event.content));

const will = (delayMs: number): WillRequest => ({
  delayMs,
  call: { topic: "will", groupId: undefined, content: new Uint8Array([1]), extensions: [], mayBeEmpty: true },
  opensTopic: true,
  expiresAfterMs: undefined,
});

async function countWills(): Promise<number> {
  await engine.clock.settle();
  const call = { topic: "will", groupId: undefined };
  return (await engine.broker.exist(call)) ? (await engine.broker.state(call)).sequence : 0;
}

describe.each(["killed", "stopped"])("a session of a broker that is %s", (how) => {
  const restart = async (): Promise<void> => {
    if (how === "killed") return kill();
    await engine.rebuild();
    await engine.broker.start();
  };

  it("continues with unacknowledged events under the same tickets, then with events published meanwhile", async () => {
    const first = new RecordingPeer();
    const attachment = await attach(first);
    await subscribe(attachment, 1);
    for (const text of ["1", "2", "3"]) await publish(text);
    attachment.session.acknowledge(first.ticketOf(1));
    attachment.session.acknowledge(first.ticketOf(3));
    await engine.clock.advance(100);
    await restart();
    await publish("4");
    const second = new RecordingPeer();
    expect((await attach(second)).isPresent).toBe(true);
    await engine.clock.settle();
    expect(texts(second)).toEqual(["2", "4"]);
    expect(second.deliveries[0]).toMatchObject({ ticket: first.ticketOf(2), isRepeated: true });
  });

  it.each([0, 60_000])(
    "keeps the cursor of a share and the unacknowledged events of its members, if one member's expiry is %i ms",
    async (expiryMs) => {
      const first = new RecordingPeer();
      const other = new RecordingPeer();
      const how = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
      const filter = parseTopicFilter("$share/s/a");
      await (await attach(other, { key: "other", windowMax: 1 })).subscribe([{ filter, ...how }]);
      const attachment = await attach(first, { expiryMs, windowMax: 2 });
      await attachment.subscribe([{ filter, ...how }]);
      first.ended = () => attachment.detach({ expiryMs, isRegular: false }); // as a gateway does
      for (const text of ["other's", "1", "2", "3", "4"]) await publish(text);
      expect([texts(other), texts(first)]).toEqual([["other's"], ["1", "2"]]);
      attachment.session.acknowledge(first.ticketOf(2));
      await engine.clock.advance(100);
      await restart();
      await publish("5");
      const second = new RecordingPeer();
      await attach(second, { key: "other" });
      await engine.clock.advance(5_000);
      expect(texts(second).toSorted()).toEqual(["2", "3", "4", "5", "other's"]);
    },
  );

  it("releases an event that its client has received, and does not deliver it again", async () => {
    const first = new RecordingPeer();
    const attachment = await attach(first);
    await subscribe(attachment, 2);
    await publish("1", 2);
    await publish("2", 2);
    attachment.session.receive(first.ticketOf(1));
    expect(first.released).toEqual([]);
    await engine.clock.advance(10);
    expect(first.released).toEqual([first.ticketOf(1)]);
    await restart();
    const second = new RecordingPeer();
    await attach(second);
    await engine.clock.advance(100);
    expect(second.released).toEqual([first.ticketOf(1)]);
    expect(texts(second)).toEqual(["2"]);
    expect(second.ticketOf(2)).toBe(first.ticketOf(2));
  });

  it("ends after its expiry time, which does not run while no broker runs", async () => {
    (await attach(new RecordingPeer())).detach({ expiryMs: 10_000, isRegular: true });
    await engine.clock.advance(4_000);
    await restart();
    await engine.clock.advance(4_000);
    const back = await attach(new RecordingPeer());
    expect(back.isPresent).toBe(true);
    back.detach({ expiryMs: 10_000, isRegular: true });
    await engine.clock.advance(5_000);
    await restart();
    await engine.clock.advance(7_000);
    expect((await attach(new RecordingPeer())).isPresent).toBe(false);
    expect(await store.sessions.listSessions({ after: undefined, limit: 9 })).toHaveLength(1);
  });

  it("has its will published once, after the will's delay", async () => {
    (await attach(new RecordingPeer(), { will: will(5_000) })).detach({ expiryMs: 60_000, isRegular: false });
    await engine.clock.advance(2_000);
    await restart();
    await engine.clock.advance(2_000);
    expect(await countWills()).toBe(0);
    await engine.clock.advance(3_000);
    expect(await countWills()).toBe(1);
    await engine.clock.advance(60_000);
    await restart();
    await engine.clock.advance(5_000);
    expect(await countWills()).toBe(1);
  });
});

it("the will of a client that was connected to a killed broker is published after the will's delay", async () => {
  await attach(new RecordingPeer(), { will: will(3_000) });
  await engine.clock.advance(100);
  await kill();
  await engine.clock.advance(2_000);
  expect(await countWills()).toBe(0);
  await engine.clock.advance(3_000);
  expect(await countWills()).toBe(1);
});

it("the wills of 50 clients that were connected to a killed broker are published in at most five blocks", async () => {
  await engine.broker.open({ topic: "will", groupId: undefined });
  for (let client = 0; client < 50; client += 1)
    await attach(new RecordingPeer(), { key: `c${client}`, will: will(0) });
  await kill();
  const before = engine.chain.head;
  await engine.clock.advance(5_000);
  expect(await countWills()).toBe(50);
  expect(engine.chain.head - before).toBeLessThanOrEqual(5);
});

it("the wills of 500 clients that were connected to a killed broker are published within a second after their delay", async () => {
  await engine.broker.open({ topic: "will", groupId: undefined });
  for (let client = 0; client < 500; client += 1)
    await attach(new RecordingPeer(), { key: `c${client}`, will: will(20_000) });
  await kill();
  await engine.clock.advance(21_500); // The first sweep after the delay may come a second after it.
  expect(await countWills()).toBe(500);
});

it.each([0, 1_000])(
  "with a will delay of %i ms, the wills of 150 clients of a killed broker are published, although the clients come back before the sweep",
  async (delayMs) => {
    await engine.broker.open({ topic: "will", groupId: undefined });
    const keys = Array.from({ length: 150 }, (_, index) => `c${index}`);
    for (const key of keys) await attach(new RecordingPeer(), { key, will: will(delayMs) });
    await kill();
    await engine.clock.advance(delayMs); // The first sweep publishes 100 wills.
    for (const key of keys) await attach(new RecordingPeer(), { key });
    await engine.clock.advance(5_000);
    expect(await countWills()).toBe(150);
  },
);

it("a client finds no session if the broker was killed before it stored the session", async () => {
  gate.isKilled = true;
  const lost = engine.broker.attach(
    {
      groupId: undefined,
      protocol: "MQTT",
      key: "c",
      isClean: false,
      windowMax: 1,
      will: undefined,
      expiryMs: 1,
      onConnected: () => {},
    },
    new RecordingPeer(),
  );
  lost.catch(() => {});
  await kill();
  expect((await attach(new RecordingPeer())).isPresent).toBe(false);
});

it("no session ends when the time of day is set forward by a year", async () => {
  (await attach(new RecordingPeer())).detach({ expiryMs: 10_000, isRegular: true });
  engine.clock.step(365 * 24 * 3_600_000);
  await engine.clock.advance(5_000);
  expect((await attach(new RecordingPeer())).isPresent).toBe(true);
});
