import { BrokerError } from "@stele/wire";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { QoS } from "../../domain/session-filter.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { createDeferred } from "../../lib/deferred.ts";
import type { Ledger } from "../../ports/ledger.ts";
import type { Attachment, AttachRequest, WillRequest } from "../broker.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestCluster } from "../testing/test-cluster.ts";

let cluster: TestCluster;
/** Whether ledgers send transactions without ever learning their outcomes. */
let isDeaf = false;

function toDeafLedger(ledger: Ledger): Ledger {
  const append = ledger.append.bind(ledger);
  ledger.append = async (batches, signal, options) => {
    const outcomes = await append(batches, signal, options);
    if (!isDeaf) return outcomes;
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    throw new BrokerError("transactionTimeout");
  };
  return ledger;
}

beforeEach(async () => {
  isDeaf = false;
  cluster = await TestCluster.start(3, { toLedger: toDeafLedger });
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
});
afterEach(async () => {
  for (const { gate } of cluster.nodes) gate.heal();
  await cluster.stopAll();
});

/** A connection at one node. */
class Client {
  readonly peer: RecordingPeer;
  readonly attachment: Attachment;

  private constructor(peer: RecordingPeer, attachment: Attachment) {
    this.peer = peer;
    this.attachment = attachment;
  }

  static async attach(node: number, request: Partial<AttachRequest> = {}): Promise<Client> {
    const defaults = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, windowMax: 10 } as const;
    const rest = { will: undefined, expiryMs: 600_000, onConnected: () => {} };
    const peer = new RecordingPeer();
    const attached = cluster.node(node).broker.attach({ ...defaults, ...rest, ...request }, peer);
    return new Client(peer, await cluster.run(attached));
  }

  async subscribe(qos: QoS, text = "a"): Promise<this> {
    const sessionFilter = { filter: parseTopicFilter(text), isNoLocal: false, isRetainAsPublished: false } as const;
    await cluster.run(this.attachment.subscribe([{ ...sessionFilter, qos, identifier: undefined }]));
    return this;
  }

  get texts(): string[] {
    return this.peer.deliveries.map(({ event }) => new TextDecoder().decode(event.content));
  }

  async acknowledge(sequence: number): Promise<void> {
    this.attachment.session.acknowledge(this.peer.ticketOf(sequence));
    await cluster.clock.advance(200);
  }

  async receive(sequence: number): Promise<void> {
    this.attachment.session.receive(this.peer.ticketOf(sequence));
    await cluster.clock.advance(200);
  }
}

async function publish(node: number, ...texts: readonly string[]): Promise<void> {
  for (const text of texts) await publishWith(node, text, 2);
}

async function publishWith(node: number, text: string, qos: QoS): Promise<void> {
  const call = { topic: "a", groupId: undefined, content: new TextEncoder().encode(text) };
  cluster.node(node).broker.submit({ ...call, extensions: [["svc-qos", String(qos)]] }, () => {});
  await cluster.clock.advance(300);
}

const will = (delayMs: number): WillRequest => ({
  delayMs,
  call: { topic: "will", groupId: undefined, content: new Uint8Array([1]), extensions: [], mayBeEmpty: true },
  opensTopic: true,
  expiresAfterMs: undefined,
});

async function countWills(node: number): Promise<number> {
  const { broker } = cluster.node(node);
  const call = { topic: "will", groupId: undefined };
  return (await cluster.run(broker.exist(call))) ? (await cluster.run(broker.state(call))).sequence : 0;
}

async function countSessions(): Promise<number> {
  const page = await cluster.shared.store.sessions.listSessions({ after: undefined, limit: 1_000 });
  return page.length;
}

/** Calls `action` once, when the store has rolled back and no node knows it yet. */
function afterRollBack(action: () => void): void {
  const { store } = cluster.shared;
  const rollBack = store.rollBack.bind(store);
  store.rollBack = async (...call) => {
    store.rollBack = rollBack;
    const outcome = await rollBack(...call);
    action();
    return outcome;
  };
}

/** Time, in milliseconds, in which the other nodes notice that a node is gone and clean up after it. */
const goneMs = 40_000;

describe("a session whose client moves to another node", () => {
  it("continues with the unacknowledged events of QoS 1, and the earlier connection ends as taken over", async () => {
    const first = await (await Client.attach(0)).subscribe(1);
    await publish(1, "1", "2", "3");
    await first.acknowledge(2);
    const again = await Client.attach(1);
    await cluster.clock.advance(1_000);
    expect(first.peer.endedBecause).toBe("taken-over");
    expect(again.attachment.isPresent).toBe(true);
    await publish(2, "4");
    expect([first.texts, again.texts]).toEqual([
      ["1", "2", "3"],
      ["1", "3", "4"],
    ]);
  });

  it("continues with QoS 2: an event that the client has received is not sent again, but its release is", async () => {
    const first = await (await Client.attach(0)).subscribe(2);
    await publish(1, "1", "2");
    await first.receive(1);
    const again = await Client.attach(2);
    await publish(0, "3");
    expect([first.texts, again.texts]).toEqual([
      ["1", "2"],
      ["2", "3"],
    ]);
    expect(again.peer.released).toEqual([first.peer.ticketOf(1)]);
    expect(again.peer.ticketOf(2)).toBe(first.peer.ticketOf(2));
    expect(again.peer.deliveries[0]).toMatchObject({ isRepeated: true });
  });

  it("delivers nothing of QoS 2 to the earlier connection after the move, even while its node is cut off", async () => {
    const first = await (await Client.attach(2)).subscribe(2);
    cluster.node(2).gate.cut("silent");
    const again = await Client.attach(1);
    await publish(1, "1");
    expect(again.texts).toEqual(["1"]);
    await cluster.clock.advance(goneMs);
    cluster.node(2).gate.heal();
    await cluster.clock.advance(goneMs);
    expect(first.texts).toEqual([]);
    expect(first.peer.endedBecause).toBe("stale");
    await publish(0, "2");
    expect(again.texts).toEqual(["1", "2"]);
  });

  it.each([0, 600_000])(
    "begins a new session for a clean attach, and ends the earlier connection, whose session has an expiry of %i ms",
    async (expiryMs) => {
      const first = await (await Client.attach(0, { expiryMs })).subscribe(1);
      await publish(0, "1");
      const again = await Client.attach(1, { isClean: true });
      await cluster.clock.advance(1_000);
      expect(first.peer.endedBecause).toBe("taken-over");
      expect(again.attachment.isPresent).toBe(false);
      await publish(0, "2");
      expect(again.texts).toEqual([]);
    },
  );

  it("stays one session, however many nodes its client connects to at once", async () => {
    await (await Client.attach(0)).subscribe(1);
    const clients = await Promise.all([0, 1, 2, 1, 0].map((node) => Client.attach(node)));
    await cluster.clock.advance(2_000);
    expect(clients.filter(({ peer }) => peer.endedBecause === undefined)).toHaveLength(1);
    await publish(0, "1");
    expect(clients.flatMap(({ texts }) => texts)).toEqual(["1"]);
  });
});

describe("a share with members at several nodes", () => {
  it("delivers each event to one member, and the events of a killed node's member to another", async () => {
    const members = [];
    for (const [node, key] of ["a", "b", "c"].entries())
      members.push(await (await Client.attach(node, { key, windowMax: 4 })).subscribe(1, "$share/s/#"));
    await publish(1, "1", "2", "3", "4", "5", "6", "7", "8", "9");
    const given = members.flatMap(({ texts }) => texts).toSorted();
    expect(given).toEqual(["1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    const lost = members[2]?.texts ?? [];
    cluster.kill(2);
    for (const member of members.slice(0, 2))
      for (let sequence = 1; sequence < 10; sequence += 1) await member.acknowledge(sequence);
    await cluster.clock.advance(goneMs);
    const again = members.slice(0, 2).flatMap(({ texts }) => texts);
    for (const text of lost) expect(again.filter((one) => one === text)).toHaveLength(1);
    expect(again.toSorted()).toEqual(given);
  });

  it("completes an event of QoS 2 with the member that has it, at whichever node that member comes back", async () => {
    const first = await (await Client.attach(0, { key: "a" })).subscribe(2, "$share/s/#");
    await publish(1, "1");
    const second = await (await Client.attach(1, { key: "b" })).subscribe(2, "$share/s/#");
    cluster.kill(0);
    await cluster.clock.advance(goneMs);
    expect([first.texts, second.texts]).toEqual([["1"], []]);
    const again = await Client.attach(2, { key: "a" });
    await cluster.clock.advance(1_000);
    expect(again.peer.deliveries).toMatchObject([{ isRepeated: true, ticket: first.peer.ticketOf(1), qos: 2 }]);
    expect(second.texts).toEqual([]);
  });
});

describe("a node with connections that dies or is cut off", () => {
  it("leaves its sessions to the other nodes, with the events in flight", async () => {
    await (await Client.attach(0)).subscribe(1);
    await publish(1, "1");
    cluster.kill(0);
    await publish(1, "2");
    await cluster.clock.advance(goneMs);
    const again = await Client.attach(1);
    await publish(2, "3");
    expect(again.texts).toEqual(["1", "2", "3"]);
  });

  it.each([0, 1])(
    "leaves its wills to the other nodes, which publish each one once (node %i is killed)",
    async (node) => {
      await Client.attach(node, { key: "now", will: will(0) });
      await Client.attach(node, { key: "later", will: will(5_000) });
      cluster.kill(node);
      await cluster.clock.advance(goneMs);
      expect(await countWills(2)).toBe(2);
      await cluster.clock.advance(goneMs);
      expect(await countWills(2)).toBe(2);
    },
  );

  it("closes its connections when it is no longer a member, and serves again once it has joined", async () => {
    const first = await (await Client.attach(0)).subscribe(1);
    cluster.node(0).gate.cut("refused");
    await cluster.clock.advance(goneMs);
    expect(first.peer.endedBecause).toBe("stale");
    cluster.node(0).gate.heal();
    await cluster.clock.advance(goneMs);
    const again = await Client.attach(0);
    expect(again.attachment.isPresent).toBe(true);
    await publish(1, "1");
    expect(again.texts).toEqual(["1"]);
  });

  it("leaves its expired sessions to the other nodes, which end them even if they fill more than one page", async () => {
    for (let count = 0; count < 110; count += 1) await Client.attach(0, { key: `c${count}`, expiryMs: 1_000 });
    expect(await countSessions()).toBe(110);
    cluster.kill(0);
    await cluster.clock.advance(goneMs);
    expect(await countSessions()).toBe(0);
  });
});

it.each([0, 1])("publishes each will of a session, however soon it follows the earlier one (node %i)", async (node) => {
  const lost = { expiryMs: 600_000, isRegular: false };
  (await Client.attach(node, { will: will(0) })).attachment.detach(lost);
  await cluster.clock.settle();
  const again = await Client.attach(node, { will: will(0) });
  await cluster.clock.advance(60_000); // The session time does not advance, because no session is disconnected.
  again.attachment.detach(lost);
  await cluster.clock.advance(5_000);
  expect(await countWills(0)).toBe(2);
});

describe("a will whose publish times out", () => {
  it("is published once, and its session ends", async () => {
    await Client.attach(0, { key: "w", will: will(1_000), expiryMs: 2_000 });
    isDeaf = true;
    cluster.kill(0);
    await cluster.clock.advance(goneMs + 60_000); // The will is on the chain, and no node knows it.
    isDeaf = false;
    await cluster.clock.advance(4 * goneMs);
    expect(await countWills(1)).toBe(1);
    expect(await countSessions()).toBe(0);
  });
});

describe("a rollback of the index", () => {
  it("still ends sessions that end with their connections, and publishes their wills", async () => {
    const first = await Client.attach(1, { expiryMs: 0, will: will(0) });
    await (await Client.attach(2, { key: "other", expiryMs: 0 })).subscribe(1);
    await publish(2, "1", "2");
    cluster.chain.cutBack(cluster.chain.head - 1);
    cluster.chain.sealEmpty();
    cluster.chain.sealEmpty();
    await cluster.clock.advance(10_000);
    first.attachment.detach({ expiryMs: 0, isRegular: false });
    await cluster.clock.advance(10_000);
    expect(await countWills(0)).toBe(1);
    expect(await countSessions()).toBe(1);
  });

  it("still publishes the will and expires the session of a client that disconnects before its node has read the session again", async () => {
    const client = await (await Client.attach(1, { expiryMs: 5_000, will: will(0) })).subscribe(1);
    await publish(2, "1", "2");
    afterRollBack(() => client.attachment.detach({ expiryMs: 5_000, isRegular: false }));
    cluster.chain.cutBack(cluster.chain.head - 1);
    cluster.chain.sealEmpty();
    cluster.chain.sealEmpty();
    await cluster.clock.advance(4_000);
    expect([await countWills(0), await countSessions()]).toEqual([1, 1]);
    await cluster.clock.advance(10_000);
    expect(await countSessions()).toBe(0);
  });

  it("still removes a subscription that its client ends before the node has read the session again", async () => {
    const stream = { filters: ["a"], acknowledges: true, offset: undefined };
    const key = "00000000-0000-4000-8000-0000000000aa";
    const client = await Client.attach(1, { protocol: "STOMP", key, stream });
    await publish(2, "1", "2");
    let ended: Promise<void> | undefined;
    afterRollBack(() => {
      ended = client.attachment.end();
    });
    cluster.chain.cutBack(cluster.chain.head - 1);
    cluster.chain.sealEmpty();
    cluster.chain.sealEmpty();
    await cluster.clock.advance(4_000);
    await ended;
    expect([ended, await countSessions()]).toEqual([expect.anything(), 0]);
  });

  it.each([0, 1, 2] as const)(
    "if an event of QoS %i waited for the write of an event of QoS 2, sends the waiting event once",
    async (qos) => {
      const client = await (await Client.attach(1)).subscribe(2);
      const { sessions } = cluster.shared.store;
      const saveSessions = sessions.saveSessions.bind(sessions);
      const rolledBack = createDeferred<void>();
      sessions.saveSessions = async (...call) => {
        await rolledBack.promise;
        return saveSessions(...call);
      };
      await publish(0, "1");
      await publishWith(0, "2", qos);
      await publish(0, "3");
      expect(client.texts).toEqual([]);
      afterRollBack(rolledBack.resolve);
      cluster.chain.cutBack(cluster.chain.head - 1);
      cluster.chain.sealEmpty();
      cluster.chain.sealEmpty();
      await cluster.clock.advance(10_000);
      expect(client.texts).toEqual(["1", "2"]);
    },
  );

  it("reads the identifier of each of 60 sessions fewer than 20 times: a node may have 20,000 sessions", async () => {
    const clients = [];
    for (let count = 0; count < 60; count += 1) clients.push(await Client.attach(1, { key: `c${count}` }));
    let looks = 0;
    for (const { attachment } of clients) {
      const { id } = attachment.session;
      const get = (): string => {
        looks += 1;
        return id;
      };
      Object.defineProperty(attachment.session, "id", { get });
    }
    await publish(2, "1", "2");
    cluster.chain.cutBack(cluster.chain.head - 1);
    cluster.chain.sealEmpty();
    cluster.chain.sealEmpty();
    await cluster.clock.advance(10_000);
    expect(looks).toBeGreaterThan(0);
    expect(looks / clients.length).toBeLessThan(20);
  });

  it("ends no connection at any node, and each connection gets the events of the new branch", async () => {
    const clients = [
      await (await Client.attach(0)).subscribe(1),
      await (await Client.attach(1, { key: "d" })).subscribe(2),
    ];
    await publish(2, "1", "2");
    cluster.chain.cutBack(cluster.chain.head - 1);
    cluster.chain.sealEmpty();
    cluster.chain.sealEmpty();
    await cluster.clock.advance(10_000);
    await publish(2, "3");
    await cluster.clock.advance(10_000);
    for (const { peer, texts } of clients) {
      expect(peer.endedBecause).toBeUndefined();
      expect(texts.slice(0, 2)).toEqual(["1", "2"]);
      expect(texts.at(-1)).toBe("3");
    }
  });
});
