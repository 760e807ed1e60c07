import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BrokerError } from "@stele/wire";
import { defaultGroupId } from "../../domain/group-id.ts";
import type { SubscriptionId } from "../../domain/subscription.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { withCalls } from "../../lib/with-calls.ts";
import type { SessionStore } from "../../ports/session-store.ts";
import type { Store } from "../../ports/store.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import type { Attachment, AttachRequest, StreamRequest } from "../broker.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestEngine, type TestEngineOptions } from "../testing/test-engine.ts";

const subscriptionId = "5e1e0000-0000-4000-8000-00000000000a";
const day = 86_400_000;
/** A time that is longer than all waits between the rejections of one event. */
const longMs = 60_000;

class RejectingPeer extends RecordingPeer {
  readonly suspendedAt: number[] = [];

  suspended(ticket: number): void {
    this.suspendedAt.push(ticket);
  }
}

let engine: TestEngine;
let peer: RejectingPeer;

beforeEach(() => start());
afterEach(() => engine.stop());

async function start(options: TestEngineOptions = {}): Promise<void> {
  engine = await TestEngine.start(options);
  await engine.broker.open({ topic: "a", groupId: undefined });
  peer = new RejectingPeer();
}

async function startOver(options: TestEngineOptions): Promise<void> {
  await engine.stop();
  await start(options);
}

async function attach(
  stream: Partial<StreamRequest> = {},
  request: Partial<AttachRequest> = {},
  to: RejectingPeer = peer,
): Promise<Attachment> {
  const attached = engine.broker.attach(
    {
      groupId: defaultGroupId,
      protocol: "STOMP",
      key: subscriptionId,
      isClean: false,
      windowMax: 10,
      will: undefined,
      expiryMs: day,
      onConnected: () => {},
      ...request,
      stream: { filters: ["a"], acknowledges: true, offset: undefined, ...stream },
    },
    to,
  );
  const [attachment] = await Promise.all([attached, engine.clock.settle()]);
  return attachment;
}

async function codeOf(attached: Promise<unknown>): Promise<number> {
  const error = await attached.catch((thrown: unknown) => thrown);
  return error instanceof BrokerError ? error.code : 0;
}

function leave(attachment: Attachment): void {
  attachment.detach({ expiryMs: day, isRegular: true });
}

describe("the start of a stream", () => {
  it("is after the newest event by default", async () => {
    await engine.publishMany("a", 2);
    await attach();
    await engine.publishMany("a", 1);
    expect(peer.sequences).toEqual([3]);
  });

  it("is before the first event with OFFSET_FIRST, and after an event with its eventId", async () => {
    await engine.publish("a", "1");
    const second = await engine.publish("a", "2");
    await engine.publish("a", "3");
    await attach({ offset: "OFFSET_FIRST" });
    await engine.clock.settle();
    expect(peer.sequences).toEqual([1, 2, 3]);
    const other = new RejectingPeer();
    await attach({ offset: second }, { key: "5e1e0000-0000-4000-8000-00000000000b" }, other);
    await engine.clock.settle();
    expect(other.sequences).toEqual([3]);
  });

  it("refuses a malformed, an unknown and a future eventId, and creates no subscription", async () => {
    const eventId = await engine.publish("a", "1");
    const [digest, , block] = eventId.split("-");
    expect(await codeOf(attach({ offset: "nonsense" }))).toBe(100302);
    expect(await codeOf(attach({ offset: `${digest}-9-${block}` }))).toBe(100303);
    expect(await codeOf(attach({ offset: `${digest}-9-99999` }))).toBe(100304);
    expect(await engine.listSubscriptions()).toEqual([]);
  });

  it("is the cursor if the subscription already exists, whatever offset the attach names", async () => {
    const first = await attach();
    await engine.publishMany("a", 3);
    first.session.acknowledge(peer.ticketOf(1));
    leave(first);
    await engine.clock.advance(100);
    const next = new RejectingPeer();
    const second = await attach({ offset: "OFFSET_FIRST" }, {}, next);
    await engine.clock.settle();
    expect(second.isPresent).toBe(true);
    expect(next.sequences).toEqual([2, 3]);
  });

  it("is after the events that the earlier connection acknowledged, even if that connection leaves after the next one has come", async () => {
    const first = await attach();
    await engine.publishMany("a", 2);
    let last = { peer, attachment: first };
    for (let turns = 0; turns < 40; turns += 1) {
      await engine.publish("a", "another");
      for (const { ticket = 0 } of last.peer.deliveries) last.attachment.session.acknowledge(ticket);
      const next = new RejectingPeer();
      const attaching = attach({}, {}, next);
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      leave(last.attachment);
      last = { peer: next, attachment: await attaching };
      await engine.clock.settle();
      expect(next.sequences, `after ${turns} turns`).toEqual([]);
    }
  });

  it("is the cursor after a restart of the broker", async () => {
    await attach({ offset: "OFFSET_FIRST", filters: ["a", "b/+"] });
    await engine.rebuild();
    await engine.broker.start();
    await engine.publish("a", "1");
    const next = new RejectingPeer();
    await attach({ filters: ["b/+", "a"] }, {}, next);
    await engine.clock.settle();
    expect(next.sequences).toEqual([1]);
  });
});

describe("a subscription identifier", () => {
  it("is refused unless it is a UUID", async () => {
    expect(await codeOf(attach({}, { key: "mine" }))).toBe(100505);
  });

  it("is refused with other filters, and if a callback subscription has it", async () => {
    await attach();
    expect(await codeOf(attach({ filters: ["b"] }, {}, new RejectingPeer()))).toBe(100108);
    expect(peer.endedBecause).toBeUndefined();
    const called = await engine.subscribe("a");
    expect(await codeOf(attach({}, { key: called }))).toBe(100108);
  });

  it("is refused for a callback subscription if a stream has it", async () => {
    await attach();
    expect(await codeOf(engine.subscribe("a", { subscriptionId }))).toBe(100108);
  });

  it("is refused for a callback subscription if a stream gets it meanwhile", async () => {
    const memory = createMemoryStore();
    const insertSubscription: Store["insertSubscription"] = async (...inserted) => {
      await attach();
      return memory.insertSubscription(...inserted);
    };
    await startOver({ store: withCalls(memory, { insertSubscription }) });
    expect(await codeOf(engine.subscribe("a", { subscriptionId }))).toBe(100108);
    expect(await engine.listSubscriptions()).toMatchObject([{ id: subscriptionId, delivery: { protocol: "STOMP" } }]);
  });

  it("is refused for a stream if a callback subscription gets it meanwhile, and is then free for a stream from any offset", async () => {
    const memory = createMemoryStore();
    let subscribed: Promise<string> | undefined;
    const saveSessionFilters: SessionStore["saveSessionFilters"] = async (key, change) => {
      await (subscribed ??= engine.subscribe("a", { subscriptionId }));
      return memory.sessions.saveSessionFilters(key, change);
    };
    await startOver({ store: withCalls(memory, { sessions: withCalls(memory.sessions, { saveSessionFilters }) }) });
    await engine.publishMany("a", 2);
    expect(await codeOf(attach())).toBe(100108);
    expect(await engine.listSubscriptions()).toMatchObject([{ id: subscriptionId, delivery: { kind: "webhook" } }]);
    expect(await memory.sessions.findFilterOwner(subscriptionId as SubscriptionId)).toBeUndefined();
    await engine.broker.unSubscribe({ subscriptionId });
    await attach({ offset: "OFFSET_FIRST" });
    await engine.clock.settle();
    expect(peer.sequences).toEqual([1, 2]);
  });

  it("is listed, and unSubscribe with it ends the subscription and its connection", async () => {
    const attachment = await attach({ filters: ["a", "b"] });
    const listed = await engine.listSubscriptions();
    expect(listed.map(({ filter }) => filter).toSorted()).toEqual(["a", "b"]);
    expect(listed.find(({ id }) => id === subscriptionId)?.delivery).toMatchObject({ protocol: "STOMP" });
    await engine.broker.unSubscribe({ subscriptionId });
    expect(peer.endedBecause).toBe("removed");
    leave(attachment);
    await engine.clock.advance(100);
    expect(await engine.listSubscriptions()).toEqual([]);
    expect((await attach({ filters: ["other"] }, {}, new RejectingPeer())).isPresent).toBe(false);
  });

  it("is free after unSubscribe of a subscription without a connection", async () => {
    leave(await attach());
    await engine.clock.advance(100);
    await engine.broker.unSubscribe({ subscriptionId });
    expect(await engine.listSubscriptions()).toEqual([]);
  });

  it("is free once its connection has ended the subscription", async () => {
    await (await attach()).end();
    expect(await engine.listSubscriptions()).toEqual([]);
    expect((await attach({ filters: ["other"] })).isPresent).toBe(false);
  });
});

describe("acknowledgements", () => {
  it("are expected only if the newest attach asks for them, even after a restart", async () => {
    for (const acknowledges of [false, true, true, false]) {
      const next = new RejectingPeer();
      const attachment = await attach({ acknowledges, filters: ["a", "b"] }, {}, next);
      await engine.publish("a", "x");
      expect(next.deliveries.map(({ ticket }) => ticket !== undefined)).toEqual([acknowledges]);
      const { ticket } = next.deliveries[0] ?? {};
      if (ticket !== undefined) attachment.session.acknowledge(ticket);
      leave(attachment);
      await engine.clock.advance(100);
      await engine.rebuild();
      await engine.broker.start();
    }
    expect((await engine.listSubscriptions()).map(({ filter }) => filter).toSorted()).toEqual(["a", "b"]);
  });

  it("count for one event each", async () => {
    const attachment = await attach();
    await engine.publishMany("a", 5);
    for (const sequence of [1, 2, 3, 5]) attachment.session.acknowledge(peer.ticketOf(sequence));
    leave(attachment);
    await engine.clock.advance(100);
    const next = new RejectingPeer();
    await attach({}, {}, next);
    await engine.clock.settle();
    expect(next.sequences).toEqual([4]);
  });

  it("are expected for an event published with QoS 0 too", async () => {
    await attach();
    const call = { topic: "a", groupId: undefined, content: Buffer.from("x"), extensions: [["svc-qos", "0"]] } as const;
    engine.broker.submit(call, () => {});
    await engine.clock.settle();
    expect(peer.deliveries[0]?.ticket).toBeDefined();
  });

  it("are outstanding for at most windowMax events", async () => {
    const attachment = await attach({}, { windowMax: 1 });
    await engine.publishMany("a", 3);
    expect(peer.sequences).toEqual([1]);
    attachment.session.acknowledge(peer.ticketOf(1));
    await engine.clock.settle();
    expect(peer.sequences).toEqual([1, 2]);
  });
});

describe("a connection that lingers", () => {
  it.each(["left", "taken over"])("keeps acknowledgements that come late: %s", async (how) => {
    const first = await attach();
    await engine.publishMany("a", 3);
    const lingering = createDeferred<void>();
    first.linger(lingering.promise);
    peer.ended = () => leave(first);
    if (how === "left") leave(first);
    const next = new RejectingPeer();
    let isAttached = false;
    const attaching = attach({}, {}, next).then(() => (isAttached = true));
    await engine.clock.advance(1_000);
    expect(isAttached).toBe(false);
    first.session.acknowledge(peer.ticketOf(2));
    lingering.resolve();
    await attaching;
    await engine.clock.settle();
    expect(next.sequences).toEqual([1, 3]);
  });

  it("writes no state that is ahead of an index that rolled back meanwhile", async () => {
    await engine.stop();
    engine = await TestEngine.start({ confirmations: 0 });
    await engine.broker.open({ topic: "a", groupId: undefined });
    const first = await attach();
    await engine.publishMany("a", 2);
    const before = engine.chain.head;
    await engine.publishMany("a", 1);
    const lingering = createDeferred<void>();
    first.linger(lingering.promise);
    leave(first);
    await engine.clock.settle();
    engine.chain.cutBack(before);
    await engine.clock.advance(1_000);
    for (const sequence of [1, 2, 3]) first.session.acknowledge(peer.ticketOf(sequence));
    lingering.resolve();
    await engine.clock.advance(1_000);
    const next = new RejectingPeer();
    await attach({}, {}, next);
    await engine.publish("a", "in the place of the third");
    await engine.clock.settle();
    expect(next.sequences).toEqual([3]);
  });
});

describe("a rejected event", () => {
  it("is delivered again with its ticket after a wait, before anything newer; a second rejection before that has no effect", async () => {
    await startOver({ limits: { rejectionsMax: 2 } });
    const attachment = await attach();
    await engine.publish("a", "1");
    const ticket = peer.ticketOf(1);
    for (let times = 0; times < 2; times += 1) attachment.session.reject(ticket);
    await engine.publish("a", "2");
    expect(peer.sequences).toEqual([1]);
    await engine.clock.advance(1_000);
    expect(peer.sequences).toEqual([1, 1, 2]);
    expect(peer.deliveries[1]).toMatchObject({ ticket, isRepeated: true });
    expect(peer.suspendedAt).toEqual([]);
  });

  it("is repeated in the order of the stream, even if a later event was rejected first", async () => {
    const attachment = await attach();
    await engine.publishMany("a", 3);
    for (const sequence of [2, 1]) attachment.session.reject(peer.ticketOf(sequence));
    await engine.clock.advance(1_000);
    expect(peer.sequences).toEqual([1, 2, 3, 1, 2]);
  });

  it("is not repeated if it is acknowledged before the retry, and does not delay later events", async () => {
    const attachment = await attach();
    await engine.publish("a", "1");
    attachment.session.reject(peer.ticketOf(1));
    attachment.session.acknowledge(peer.ticketOf(1));
    await engine.publish("a", "2");
    await engine.clock.advance(1_000);
    expect(peer.sequences).toEqual([1, 2]);
  });

  it("may be rejected during its delivery", async () => {
    const attachment = await attach();
    peer.deliver = (delivery) => {
      peer.deliveries.push(delivery);
      if (peer.deliveries.length < 4) attachment.session.reject(delivery.ticket ?? 0);
    };
    await engine.publish("a", "1");
    await engine.clock.advance(longMs);
    expect(peer.sequences).toEqual([1, 1, 1, 1]);
    expect(peer.suspendedAt).toEqual([]);
  });

  it("suspends the subscription after too many rejections, counted across connections; a new attach resumes it", async () => {
    let attachment = await attach();
    await engine.publishMany("a", 2);
    const count = (): number => peer.sequences.filter((sequence) => sequence === 1).length;
    const reject = async (): Promise<void> => {
      attachment.session.reject(peer.ticketOf(1));
      await engine.clock.advance(longMs);
    };
    for (let times = 0; times < 5; times += 1) await reject();
    expect(count()).toBe(6);
    leave(attachment);
    await engine.clock.advance(100);
    peer = new RejectingPeer();
    attachment = await attach();
    await engine.clock.settle();
    for (let times = 0; times < 3; times += 1) await reject();
    expect(count()).toBe(3);
    expect(peer.suspendedAt).toEqual([peer.ticketOf(1)]);
    const [listed] = await engine.listSubscriptions();
    expect(listed).toMatchObject({ state: "suspended", notifyingCount: 2 });
    expect(engine.running.groupHealth()[0]).toMatchObject({
      ready: true,
      warning: expect.stringContaining(subscriptionId),
    });
    await engine.publish("a", "3");
    await engine.clock.advance(longMs);
    expect(peer.sequences).toEqual([1, 2, 1, 1]);
    leave(attachment);
    await engine.clock.advance(100);
    expect((await engine.listSubscriptions())[0]).toMatchObject({ state: "suspended" });
    peer = new RejectingPeer();
    await attach();
    await engine.clock.settle();
    expect(peer.sequences).toEqual([1, 2, 3]);
    expect((await engine.listSubscriptions())[0]).toMatchObject({ state: "active" });
  });
});
