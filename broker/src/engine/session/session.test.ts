import { BrokerError } from "@stele/wire";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { TestEngine } from "../testing/test-engine.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import type { Attachment, AttachRequest, WillRequest } from "../broker.ts";
import type { Delivery } from "./peer.ts";

let engine: TestEngine;
beforeEach(async () => {
  engine = await TestEngine.start();
  await engine.broker.open({ topic: "a", groupId: undefined });
});
afterEach(() => engine.stop());

async function attach(peer: RecordingPeer, request: Partial<AttachRequest> = {}): Promise<Attachment> {
  const attached = engine.broker.attach({ ...attachRequest, ...request }, peer);
  const [attachment] = await Promise.all([attached, engine.clock.settle()]);
  return attachment;
}

async function subscribe(
  attachment: Attachment,
  text: string,
  sessionFilter: { qos?: 0 | 1 | 2; isNoLocal?: boolean } = {},
): Promise<void> {
  const filter = parseTopicFilter(text);
  const defaults = { filter, qos: 1 as const, isNoLocal: false, isRetainAsPublished: false, identifier: undefined };
  expect(await attachment.subscribe([{ ...defaults, ...sessionFilter }])).not.toContainEqual(expect.any(Error));
}

const attachRequest: AttachRequest = {
  groupId: undefined,
  protocol: "MQTT",
  key: "c",
  isClean: false,
  windowMax: 10,
  will: undefined,
  expiryMs: 60_000,
  onConnected: () => {},
};

const kept = { expiryMs: 60_000, isRegular: true };

describe("a session", () => {
  it("gets each event published after its SUBSCRIBE once, however many filters match", async () => {
    const peer = new RecordingPeer();
    await engine.publish("a", "before");
    const attachment = await attach(peer);
    await subscribe(attachment, "a");
    await subscribe(attachment, "#");
    await engine.publishMany("a", 3);
    expect(peer.sequences).toEqual([2, 3, 4]);
    expect(peer.deliveries[0]?.filters.map(({ filter }) => filter)).toEqual(["a", "#"]);
  });

  it("gets events that are in memory in one turn, so that they are sent in one write", async () => {
    const turns = new Set<object>();
    let turn = {};
    class CountingPeer extends RecordingPeer {
      override deliver(delivery: Delivery): void {
        super.deliver(delivery);
        turns.add(turn);
        queueMicrotask(() => {
          turn = {};
        });
      }
    }
    const peer = new CountingPeer();
    const attachment = await attach(peer);
    await subscribe(attachment, "a");
    peer.hasRoom = false;
    await engine.publishMany("a", 5);
    peer.hasRoom = true;
    attachment.session.wake();
    await engine.clock.settle();
    expect(peer.sequences).toEqual([1, 2, 3, 4, 5]);
    expect(turns.size).toBe(1);
  });

  it("gets no more events than its window, and another for each acknowledgement", async () => {
    const peer = new RecordingPeer();
    const attachment = await attach(peer, { windowMax: 2 });
    await subscribe(attachment, "a");
    await engine.publishMany("a", 5);
    expect(peer.sequences).toEqual([1, 2]);
    attachment.session.acknowledge(peer.ticketOf(2));
    await engine.clock.settle();
    expect(peer.sequences).toEqual([1, 2, 3]);
  });

  it("gets nothing while its peer has no room", async () => {
    const peer = new RecordingPeer();
    const attachment = await attach(peer);
    await subscribe(attachment, "a", { qos: 0 });
    peer.hasRoom = false;
    await engine.publishMany("a", 3);
    expect(peer.sequences).toEqual([]);
    peer.hasRoom = true;
    attachment.session.wake();
    await engine.clock.settle();
    expect(peer.sequences).toEqual([1, 2, 3]);
  });

  it("keeps its client's unreleased QoS 2 identifiers across connections, until the session ends", async () => {
    const attachment = await attach(new RecordingPeer(), { expiryMs: 60_000 });
    const outcome = Promise.resolve({ topic: "a", eventId: "", status: "SUCCESS" } as const);
    attachment.session.inbound.set(5, outcome);
    attachment.detach({ expiryMs: 60_000, isRegular: true });
    const again = await attach(new RecordingPeer(), { expiryMs: 60_000 });
    expect([...again.session.inbound]).toEqual([[5, outcome]]);
    const takenOver = await attach(new RecordingPeer(), { expiryMs: 60_000 });
    expect([...takenOver.session.inbound]).toEqual([[5, outcome]]);
    const clean = await attach(new RecordingPeer(), { expiryMs: 60_000, isClean: true });
    expect(clean.session.inbound.size).toBe(0);
  });

  it("repeats the events that an earlier connection did not acknowledge, with the same tickets, and then delivers newer ones", async () => {
    const first = new RecordingPeer();
    const attachment = await attach(first);
    await subscribe(attachment, "a");
    await engine.publishMany("a", 3);
    attachment.session.acknowledge(first.ticketOf(2));
    attachment.detach(kept);
    await engine.publishMany("a", 2);
    const second = new RecordingPeer();
    const again = await attach(second);
    await engine.clock.settle();
    expect(again.isPresent).toBe(true);
    expect(second.deliveries.map(({ event, ticket, isRepeated }) => [event.sequence, ticket, isRepeated])).toEqual([
      [1, first.ticketOf(1), true],
      [3, first.ticketOf(3), true],
      [4, expect.any(Number), false],
      [5, expect.any(Number), false],
    ]);
  });

  it("continues if its window is full when the client reconnects", async () => {
    const first = new RecordingPeer();
    const attachment = await attach(first, { windowMax: 2 });
    await subscribe(attachment, "a");
    await engine.publishMany("a", 4);
    expect(first.sequences).toEqual([1, 2]);
    attachment.detach(kept);
    const second = new RecordingPeer();
    const again = await attach(second, { windowMax: 2 });
    await engine.clock.settle();
    expect(second.sequences).toEqual([1, 2]);
    for (const sequence of [1, 2]) again.session.acknowledge(second.ticketOf(sequence));
    await engine.clock.settle();
    expect(second.sequences).toEqual([1, 2, 3, 4]);
  });

  it("gets the events of a new branch below the block at which it connected", async () => {
    await engine.stop();
    engine = await TestEngine.start({ confirmations: 0 });
    await engine.broker.open({ topic: "a", groupId: undefined });
    const attachment = await attach(new RecordingPeer());
    await subscribe(attachment, "a");
    await engine.publishMany("a", 3);
    attachment.detach(kept);
    const peer = new RecordingPeer();
    await attach(peer);
    await engine.clock.settle();
    peer.deliveries.length = 0;
    engine.chain.cutBack(engine.chain.head - 2);
    engine.chain.sealEmpty();
    await engine.publishMany("a", 3);
    await engine.clock.settle();
    expect(peer.sequences).toEqual([2, 3, 4]);
  });

  it("asks for the release of received events, and does not deliver them again", async () => {
    const first = new RecordingPeer();
    const attachment = await attach(first);
    await subscribe(attachment, "a", { qos: 2 });
    await engine.publishMany("a", 2);
    attachment.session.receive(first.ticketOf(1));
    attachment.detach(kept);
    const second = new RecordingPeer();
    await attach(second);
    await engine.clock.settle();
    expect(second.released).toEqual([first.ticketOf(1)]);
    expect(second.sequences).toEqual([2]);
  });

  it("repeats an event with the QoS of its first delivery, even if the filters have changed since", async () => {
    const first = new RecordingPeer();
    const attachment = await attach(first);
    await subscribe(attachment, "a", { qos: 1 });
    await engine.publish("a", "1");
    await subscribe(attachment, "a", { qos: 0 });
    attachment.detach(kept);
    const second = new RecordingPeer();
    await attach(second);
    await engine.clock.settle();
    expect(second.deliveries.map(({ qos, ticket }) => [qos, ticket])).toEqual([[1, first.ticketOf(1)]]);
  });

  it("ends the connection if the delivery of an event throws", async () => {
    const peer = new RecordingPeer();
    peer.deliver = () => {
      throw new RangeError("too long");
    };
    await subscribe(await attach(peer), "a");
    await engine.publish("a", "1");
    expect(peer.endedBecause).toBe("failed");
  });

  it("repeats an unacknowledged event of a filter that was removed", async () => {
    const first = new RecordingPeer();
    const attachment = await attach(first);
    await subscribe(attachment, "a");
    await engine.publish("a", "1");
    await attachment.unsubscribe([parseTopicFilter("a")]);
    await engine.publish("a", "2");
    attachment.detach(kept);
    const second = new RecordingPeer();
    await attach(second);
    await engine.clock.settle();
    expect(second.sequences).toEqual([1]);
  });

  it("ends with its connection if its expiry time is 0", async () => {
    const attachment = await attach(new RecordingPeer());
    await subscribe(attachment, "a");
    attachment.detach({ expiryMs: 0, isRegular: true });
    expect((await attach(new RecordingPeer())).isPresent).toBe(false);
  });

  it("ends when its expiry time has passed", async () => {
    (await attach(new RecordingPeer())).detach({ expiryMs: 5_000, isRegular: true });
    await engine.clock.advance(4_999);
    const present = await attach(new RecordingPeer());
    expect(present.isPresent).toBe(true);
    present.detach({ expiryMs: 5_000, isRegular: true });
    await engine.clock.advance(5_001);
    expect((await attach(new RecordingPeer())).isPresent).toBe(false);
  });

  it("with an expiry time of 0, ends when another connection takes it over, and its will is published", async () => {
    await subscribe(await attach(new RecordingPeer(), { expiryMs: 0, will: will(50_000) }), "a");
    const peer = new RecordingPeer();
    expect((await attach(peer)).isPresent).toBe(false);
    expect(await countWills()).toBe(1);
    await engine.publish("a", "1");
    expect(peer.sequences).toEqual([]);
  });

  it("is refused above the limit of sessions, unless it already has a connection", async () => {
    await engine.stop();
    engine = await TestEngine.start({ limits: { sessionsMax: 2 } });
    await attach(new RecordingPeer(), { key: "1" });
    await attach(new RecordingPeer(), { key: "2" });
    await expect(attach(new RecordingPeer(), { key: "3" })).rejects.toThrow(BrokerError);
    await attach(new RecordingPeer(), { key: "2" });
  });

  it("starts without filters and events after a clean attach", async () => {
    const attachment = await attach(new RecordingPeer());
    await subscribe(attachment, "a");
    attachment.detach(kept);
    const peer = new RecordingPeer();
    expect((await attach(peer, { isClean: true })).isPresent).toBe(false);
    await engine.publish("a", "1");
    expect(peer.sequences).toEqual([]);
  });

  it("goes to the newest connection; the earlier one ends, and can no longer end the session", async () => {
    const first = new RecordingPeer();
    const attachment = await attach(first);
    await subscribe(attachment, "a");
    const second = new RecordingPeer();
    await attach(second);
    expect(first.endedBecause).toBe("taken-over");
    attachment.detach({ expiryMs: 0, isRegular: true });
    await engine.publish("a", "1");
    expect(first.sequences).toEqual([]);
    expect(second.sequences).toEqual([1]);
  });

  it("does not get its own publishes if its filter has isNoLocal", async () => {
    const peer = new RecordingPeer();
    const attachment = await attach(peer);
    await subscribe(attachment, "a", { isNoLocal: true });
    const origin = attachment.session.originFor("a") ?? "";
    const content = new Uint8Array([1]);
    const call = { topic: "a", groupId: undefined, content, extensions: [["svc-origin", origin]] as const };
    engine.broker.submit(call, () => {});
    await engine.publish("a", "another's");
    await engine.clock.settle();
    expect(attachment.session.originFor("b")).toBeUndefined();
    expect(peer.sequences).toEqual([2]);
  });

  it("gets each event with the lower QoS of its publish and of its filter", async () => {
    const peer = new RecordingPeer();
    await subscribe(await attach(peer), "a", { qos: 2 });
    for (const qos of ["0", "1", "2"]) {
      const extensions = [["svc-qos", qos]] as const;
      engine.broker.submit({ topic: "a", groupId: undefined, content: new Uint8Array([1]), extensions }, () => {});
    }
    await engine.clock.advance(100); // The engine writes the ticket of QoS 2 before it delivers the event.
    expect(peer.deliveries.map(({ qos, ticket }) => [qos, ticket !== undefined])).toEqual([
      [0, false],
      [1, true],
      [2, true],
    ]);
  });
});

const will = (delayMs: number, content = new Uint8Array()): WillRequest => ({
  delayMs,
  call: { topic: "will", groupId: undefined, content, extensions: [], mayBeEmpty: true },
  opensTopic: true,
  expiresAfterMs: undefined,
});

/** Wills published so far. */
async function countWills(): Promise<number> {
  await engine.clock.settle();
  const call = { topic: "will", groupId: undefined };
  return (await engine.broker.exist(call)) ? (await engine.broker.state(call)).sequence : 0;
}

function attachWith(key: string): Promise<Attachment> {
  return attach(new RecordingPeer(), { key, will: will(0, new Uint8Array(1_000)) });
}

describe("a will", () => {
  const lost = { expiryMs: 60_000, isRegular: false };

  it("is published when the connection is lost, and not when the client disconnects", async () => {
    (await attach(new RecordingPeer(), { will: will(0) })).detach(kept);
    expect(await countWills()).toBe(0);
    (await attach(new RecordingPeer(), { will: will(0) })).detach(lost);
    expect(await countWills()).toBe(1);
  });

  it("is refused if the wills of its node would take too much memory", async () => {
    await engine.stop();
    engine = await TestEngine.start({ limits: { willBytesMax: 2_100 } });
    const first = await attachWith("first");
    await attachWith("second");
    await expect(attachWith("third")).rejects.toThrow(BrokerError);
    first.detach(kept);
    await attachWith("third");
    await expect(attachWith("fourth")).rejects.toThrow(BrokerError);
  });

  it("is refused if the wills of connections that attach at once would take too much memory", async () => {
    await engine.stop();
    engine = await TestEngine.start({ limits: { willBytesMax: 2_100 } });
    const attached = await Promise.allSettled(["first", "second", "third"].map(attachWith));
    expect(attached.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected"]);
  });

  it("waits for its delay, and is dropped when the client comes back before", async () => {
    (await attach(new RecordingPeer(), { will: will(5_000) })).detach(lost);
    await engine.clock.advance(4_999);
    (await attach(new RecordingPeer())).detach(kept);
    await engine.clock.advance(10_000);
    expect(await countWills()).toBe(0);
    (await attach(new RecordingPeer(), { will: will(5_000) })).detach(lost);
    await engine.clock.advance(5_000);
    expect(await countWills()).toBe(1);
  });

  it("is published when the session ends before its delay has passed", async () => {
    (await attach(new RecordingPeer(), { will: will(50_000) })).detach({ expiryMs: 1_000, isRegular: false });
    await engine.clock.advance(1_000);
    expect(await countWills()).toBe(1);
  });

  it.each([
    { what: "detaches when notified", expiryMs: 60_000, leaves: true },
    { what: "detaches when notified", expiryMs: 0, leaves: true },
    { what: "has not left yet", expiryMs: 60_000, leaves: false },
    { what: "has not left yet", expiryMs: 0, leaves: false },
  ])("is published once when a session of $expiryMs ms is taken over from a connection that $what", async (former) => {
    const { expiryMs, leaves } = former;
    let attachment: Attachment | undefined;
    class LeavingPeer extends RecordingPeer {
      override ended(): void {
        if (leaves) attachment?.detach({ expiryMs, isRegular: false });
      }
    }
    attachment = await attach(new LeavingPeer(), { expiryMs, will: will(0) });
    await attach(new RecordingPeer(), { expiryMs });
    expect(await countWills()).toBe(1);
  });

  it("is published when a clean attach replaces the session whose connection was lost", async () => {
    (await attach(new RecordingPeer(), { will: will(50_000) })).detach(lost);
    await attach(new RecordingPeer(), { isClean: true });
    expect(await countWills()).toBe(1);
  });
});
