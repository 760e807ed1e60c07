import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SessionFilter } from "../../../domain/session-filter.ts";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import { createDeferred } from "../../../lib/deferred.ts";
import type { SessionId } from "../../../ports/session-store.ts";
import { createMemoryStore } from "../../../store/memory/memory-store.ts";
import type { Attachment } from "../../broker.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestEngine } from "../../testing/test-engine.ts";
import { withSessionCalls } from "../../testing/with-session-calls.ts";

let engine: TestEngine;
beforeEach(async () => {
  engine = await TestEngine.start();
  for (const topic of ["a", "b"]) await engine.broker.open({ topic, groupId: undefined });
});
afterEach(() => engine.stop());

const kept = { expiryMs: 60_000, isRegular: true };
const ended = { expiryMs: 0, isRegular: true };

class Client {
  readonly peer = new RecordingPeer();
  readonly attachment: Attachment;

  private constructor(peer: RecordingPeer, attachment: Attachment) {
    this.peer = peer;
    this.attachment = attachment;
  }

  static async attach(key: string, windowMax = 10): Promise<Client> {
    const peer = new RecordingPeer();
    const request = { groupId: undefined, protocol: "MQTT", key, isClean: false, will: undefined, windowMax } as const;
    const attached = engine.broker.attach({ ...request, expiryMs: 60_000, onConnected: () => {} }, peer);
    const [attachment] = await Promise.all([attached, engine.clock.settle()]);
    return new Client(peer, attachment);
  }

  async subscribe(text: string, sessionFilter: Partial<SessionFilter> = {}): Promise<this> {
    const defaults = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
    await this.attachment.subscribe([{ ...defaults, filter: parseTopicFilter(text), ...sessionFilter }]);
    await engine.clock.settle();
    return this;
  }

  async acknowledge(...sequences: readonly number[]): Promise<void> {
    for (const sequence of sequences) this.attachment.session.acknowledge(this.peer.ticketOf(sequence));
    await engine.clock.settle();
  }

  async detach(leave: typeof kept): Promise<void> {
    this.attachment.detach(leave);
    await engine.clock.settle();
  }
}

/** Publishes an event, and waits until a member has it. */
async function publishText(topic: string, text: string): Promise<void> {
  await engine.publish(topic, text);
  await engine.clock.settle();
}

async function publishMany(topic: string, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) await publishText(topic, `event ${index}`);
}

async function attachBoth(windowMax = 10): Promise<readonly [Client, Client]> {
  const first = await Client.attach("first", windowMax);
  const second = await Client.attach("second", windowMax);
  await first.subscribe("$share/s/a");
  await second.subscribe("$share/s/a");
  return [first, second];
}

describe("a share", () => {
  it("delivers each event to one of its members, in turn", async () => {
    const [first, second] = await attachBoth();
    await publishMany("a", 4);
    expect([first.peer.sequences, second.peer.sequences]).toEqual([
      [1, 3],
      [2, 4],
    ]);
  });

  it("delivers only events that were published after its first member joined", async () => {
    await publishMany("a", 2);
    const [first, second] = await attachBoth();
    await publishMany("a", 2);
    expect([first.peer.sequences, second.peer.sequences]).toEqual([[3], [4]]);
  });

  it("is separate from shares with another name or filter, and from a member's own filter", async () => {
    const [first] = await attachBoth();
    const third = await Client.attach("third");
    for (const text of ["$share/t/a", "$share/s/#", "a"]) await third.subscribe(text);
    await publishText("a", "1");
    expect(first.peer.sequences).toEqual([1]);
    expect(third.peer.deliveries.map(({ filters }) => filters[0]?.filter).toSorted()).toEqual([
      "$share/s/#",
      "$share/t/a",
      "a",
    ]);
  });

  it("skips a member without room, and waits when none has room", async () => {
    const [first, second] = await attachBoth(1);
    await publishMany("a", 4);
    expect([first.peer.sequences, second.peer.sequences]).toEqual([[1], [2]]);
    await second.acknowledge(2);
    expect([first.peer.sequences, second.peer.sequences]).toEqual([[1], [2, 3]]);
    await second.acknowledge(3);
    expect([first.peer.sequences, second.peer.sequences]).toEqual([[1], [2, 3, 4]]);
  });

  it.each([kept, ended])("delivers the unacknowledged events of a leaving member to another: %j", async (leave) => {
    const [first, second] = await attachBoth();
    await publishMany("a", 5);
    await first.acknowledge(3);
    await first.detach(leave);
    expect(second.peer.sequences).toEqual([2, 4, 1, 5]);
    expect(second.peer.deliveries.map(({ isRepeated }) => isRepeated)).toEqual([false, false, false, false]);
  });

  it("delivers the unacknowledged events of a leaving member only once to a member that gets them with QoS 0", async () => {
    const [first, second] = await attachBoth();
    await second.subscribe("$share/s/a", { qos: 0 });
    await publishMany("a", 3);
    await first.detach(kept);
    await engine.clock.advance(130_000); // two checks
    expect(second.peer.sequences).toEqual([2, 1, 3]);
  });

  it("keeps unacknowledged and newer events while it has no connected member", async () => {
    const first = await (await Client.attach("first")).subscribe("$share/s/a");
    await publishMany("a", 2);
    await first.acknowledge(1);
    await first.detach(kept);
    await publishMany("a", 2);
    const again = await Client.attach("first");
    expect(new Set(again.peer.sequences)).toEqual(new Set([2, 3, 4]));
  });

  it("if its only member connects again while the old connection is open, delivers unacknowledged and waiting events to that member", async () => {
    await (await Client.attach("first", 2)).subscribe("$share/s/a");
    await publishMany("a", 3);
    const again = await Client.attach("first");
    expect(new Set(again.peer.sequences)).toEqual(new Set([1, 2, 3]));
  });

  it("completes an event of QoS 2 with the member that has it, and delivers it to nobody else", async () => {
    const first = await (await Client.attach("first")).subscribe("$share/s/a", { qos: 2 });
    const content = new Uint8Array([1]);
    const extensions = [["svc-qos", "2"]] as const;
    engine.broker.submit({ topic: "a", groupId: undefined, content, extensions }, () => {});
    await engine.clock.advance(100); // The engine writes the ticket before it delivers the event.
    const second = await (await Client.attach("second")).subscribe("$share/s/a", { qos: 2 });
    await first.detach(kept);
    expect(second.peer.sequences).toEqual([]);
    const again = await Client.attach("first");
    expect(again.peer.deliveries).toMatchObject([{ isRepeated: true, ticket: first.peer.ticketOf(1), qos: 2 }]);
  });

  it("delivers no more than its window to a member, however often it reconnects without an acknowledgement", async () => {
    const first = await (await Client.attach("first", 2)).subscribe("$share/s/a", { qos: 2 });
    const call = {
      topic: "a",
      groupId: undefined,
      content: new Uint8Array([1]),
      extensions: [["svc-qos", "2"]],
    } as const;
    for (let count = 0; count < 20; count += 1) engine.broker.submit(call, () => {});
    await engine.clock.settle();
    await first.detach(kept);
    for (let round = 0; round < 4; round += 1) {
      const again = await Client.attach("first", 2);
      expect(again.peer.sequences).toEqual([1, 2]);
      await again.detach(kept);
    }
  });

  it("lets a member that unsubscribes keep its unacknowledged events, and delivers no more to it", async () => {
    const [first, second] = await attachBoth();
    await publishMany("a", 2);
    const filter = parseTopicFilter("$share/s/a");
    expect(await first.attachment.unsubscribe([filter])).toEqual([true]);
    expect(await first.attachment.unsubscribe([filter])).toEqual([false]);
    await publishMany("a", 2);
    expect([first.peer.sequences, second.peer.sequences]).toEqual([[1], [2, 3, 4]]);
    await first.detach(ended);
    expect(second.peer.sequences).toEqual([2, 3, 4, 1]);
  });

  it("delivers with the QoS and the identifier of the member's filter", async () => {
    const first = await (await Client.attach("first")).subscribe("$share/s/a", { qos: 0, identifier: 7 });
    await publishText("a", "1");
    expect(first.peer.deliveries).toMatchObject([{ qos: 0, ticket: undefined, filters: [{ identifier: 7 }] }]);
    await first.subscribe("$share/s/a", { qos: 1, identifier: 8 });
    await publishText("a", "2");
    expect(first.peer.deliveries[1]).toMatchObject({ qos: 1, filters: [{ identifier: 8 }] });
  });

  it("delivers an event to another member when the first member's connection fails during the delivery", async () => {
    const [first, second] = await attachBoth();
    first.peer.deliver = () => first.attachment.detach(kept);
    await publishText("a", "1");
    await engine.clock.settle();
    expect(second.peer.sequences).toEqual([1]);
  });

  it("delivers the events of a new branch after a rollback, and none of the old branch", async () => {
    await engine.stop();
    engine = await TestEngine.start({ confirmations: 0 });
    await engine.broker.open({ topic: "a", groupId: undefined });
    const [first, second] = await attachBoth();
    await publishMany("a", 3);
    engine.chain.cutBack(engine.chain.head - 1);
    engine.chain.sealEmpty();
    await engine.clock.settle();
    await first.detach(ended);
    await publishMany("a", 2);
    await engine.clock.settle();
    expect([first.peer.sequences, second.peer.sequences]).toEqual([
      [1, 3],
      [2, 1, 3, 4],
    ]);
  });
});

it("gives an event to another member if the take failed and the only connected member has left the share", async () => {
  await engine.stop();
  const memory = createMemoryStore();
  let isCut = true;
  const takeShared: typeof memory.shares.takeShared = async (take) => {
    const outcome = await memory.shares.takeShared(take);
    if (isCut) throw new Error("the connection broke after the commit");
    return outcome;
  };
  engine = await TestEngine.start({ store: withSessionCalls(memory, { takeShared }) });
  await engine.broker.open({ topic: "a", groupId: undefined });
  const other = await (await Client.attach("other")).subscribe("$share/s/a");
  await other.detach(kept);
  const first = await (await Client.attach("first")).subscribe("$share/s/a");
  await publishText("a", "1");
  await first.attachment.unsubscribe([parseTopicFilter("$share/s/a")]);
  isCut = false;
  await engine.clock.advance(10_000);
  const again = await Client.attach("other");
  await engine.clock.advance(2_000);
  expect(again.peer.sequences).toEqual([1]);
});

it("if a client leaves while the store writes its subscription to a share, the share does not keep the client as a member", async () => {
  const memory = createMemoryStore();
  const gate = createDeferred<void>();
  let looks = 0;
  const store = withSessionCalls(memory, {
    saveSessionFilters: async (...call) => {
      const outcome = await memory.sessions.saveSessionFilters(...call);
      await gate.promise;
      return outcome;
    },
    findReturning: async (ids) => {
      looks += 1;
      return memory.shares.findReturning(ids);
    },
  });
  const own = await TestEngine.start({ store });
  const request = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, windowMax: 10 } as const;
  const more = { will: undefined, expiryMs: 60_000, onConnected: () => {} };
  const attached = own.broker.attach({ ...request, ...more }, new RecordingPeer());
  const [attachment] = await Promise.all([attached, own.clock.settle()]);
  const how = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  const subscribed = attachment.subscribe([{ ...how, filter: parseTopicFilter("$share/s/a") }]);
  await own.clock.settle();
  attachment.detach({ expiryMs: 60_000, isRegular: true });
  gate.resolve();
  await subscribed;
  await own.clock.advance(5_000);
  expect(looks).toBe(0);
  await own.stop();
});

it("reads the store at most once, not once per share, when another client comes and leaves", async () => {
  await engine.stop();
  const memory = createMemoryStore();
  const reads = { listReturned: 0, findReturning: 0 };
  engine = await TestEngine.start({
    store: withSessionCalls(memory, {
      listReturned: (id, page) => {
        reads.listReturned += 1;
        return memory.shares.listReturned(id, page);
      },
      findReturning: (ids) => {
        reads.findReturning += 1;
        return memory.shares.findReturning(ids);
      },
    }),
  });
  const member = await Client.attach("member");
  for (let number = 0; number < 50; number += 1) await member.subscribe(`$share/s${number}/a`);
  Object.assign(reads, { listReturned: 0, findReturning: 0 });
  for (let number = 0; number < 20; number += 1) {
    const other = await Client.attach(`other ${number}`);
    await other.subscribe("b");
    await other.detach(kept);
  }
  expect(reads.listReturned).toBe(0);
  expect(reads.findReturning).toBeLessThanOrEqual(20);
});

it("reads the events of a leaving member page by page, each page from the end of the page before", async () => {
  await engine.stop();
  const memory = createMemoryStore();
  const pages: (readonly [after: number, found: number])[] = [];
  engine = await TestEngine.start({
    store: withSessionCalls(memory, {
      listReturned: async (id, page) => {
        const places = await memory.shares.listReturned(id, page);
        pages.push([page.after, places.length]);
        return places;
      },
    }),
  });
  await engine.broker.open({ topic: "a", groupId: undefined });
  const [first, second] = await attachBoth(150);
  await publishMany("a", 260);
  expect(first.peer.sequences).toHaveLength(130);
  await second.acknowledge(...second.peer.sequences);
  pages.length = 0;
  await first.detach(kept);
  expect(second.peer.sequences.slice(130)).toEqual(first.peer.sequences);
  expect(pages.map(([, found]) => found)).toEqual([64, 64, 2]);
  const positions = first.peer.deliveries.map(({ event }) => event.position);
  expect(pages.map(([after]) => after)).toEqual([0, positions[63], positions[127]]);
});

it("without other nodes, looks for returned events at most once a minute, but soon again after a failed read", async () => {
  await engine.stop();
  const memory = createMemoryStore();
  let looks = 0;
  let isBroken = false;
  const findReturning: typeof memory.shares.findReturning = async (ids) => {
    looks += 1;
    if (isBroken) throw new Error("the store fails");
    return memory.shares.findReturning(ids);
  };
  engine = await TestEngine.start({ store: withSessionCalls(memory, { findReturning }) });
  await engine.broker.open({ topic: "a", groupId: undefined });
  const [first, second] = await attachBoth();
  await publishMany("a", 2);
  looks = 0;
  await engine.clock.advance(60_000);
  expect(looks).toBeLessThanOrEqual(1);
  isBroken = true;
  await first.detach(kept);
  expect(second.peer.sequences).toEqual([2]);
  isBroken = false;
  await engine.clock.advance(2_000);
  expect(second.peer.sequences).toEqual([2, 1]);
});

it("delivers a member's events to another member at once if the store has lost the member's session", async () => {
  await engine.stop();
  const memory = createMemoryStore();
  engine = await TestEngine.start({ store: memory });
  await engine.broker.open({ topic: "a", groupId: undefined });
  const [first, second] = await attachBoth();
  await publishMany("a", 3);
  const found = await memory.sessions.findSession(first.attachment.session.id as SessionId); // The engine made it.
  if (found === undefined) throw new Error("the session is not in the store");
  await memory.sessions.removeSession(found.session);
  await first.acknowledge(1); // The store refuses to write the session.
  await engine.clock.advance(500);
  expect(first.peer.endedBecause).toBe("taken-over");
  expect(second.peer.sequences).toEqual([2, 1, 3]);
});

it("delivers a member's events to another member within 10 s if an attach to the member's session fails after the store has committed its claim", async () => {
  await engine.stop();
  const memory = createMemoryStore();
  let isCut = false;
  const claimSession: typeof memory.sessions.claimSession = async (claim) => {
    const claimed = await memory.sessions.claimSession(claim);
    if (isCut) throw new Error("the connection broke after the commit");
    return claimed;
  };
  engine = await TestEngine.start({ store: withSessionCalls(memory, { claimSession }) });
  await engine.broker.open({ topic: "a", groupId: undefined });
  const [, second] = await attachBoth();
  await publishMany("a", 2);
  isCut = true;
  await expect(Client.attach("first")).rejects.toThrow("broke");
  await engine.clock.advance(10_000);
  expect(second.peer.sequences).toEqual([2, 1]);
});
