import { afterEach, beforeEach, expect, it } from "vitest";
import type { Ledger } from "../../../ports/ledger.ts";
import type { TailStart } from "../../broker.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestCluster } from "../../testing/test-cluster.ts";

let cluster: TestCluster;

/** Whether the chain leaves reads of blocks unanswered. */
let isSilent: boolean;

function toSilentLedger(ledger: Ledger): Ledger {
  const readBlock = ledger.readBlock.bind(ledger);
  ledger.readBlock = async (blockNumber, signal) => (isSilent ? new Promise(() => {}) : readBlock(blockNumber, signal));
  return ledger;
}

beforeEach(async () => {
  isSilent = false;
  cluster = await TestCluster.start(3, { toLedger: toSilentLedger });
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
});
afterEach(() => cluster.stopAll());

class TailPeer extends RecordingPeer {
  readonly rollBacks: number[] = [];
  start: TailStart | undefined;

  rolledBack(to: number): void {
    this.rollBacks.push(to);
  }

  get texts(): string[] {
    return this.deliveries.map(({ event }) => new TextDecoder().decode(event.content));
  }

  get lastId(): string | undefined {
    return this.deliveries.at(-1)?.eventId ?? this.start?.id;
  }
}

async function tail(node: number, lastEventId?: string) {
  const peer = new TailPeer();
  const onConnected = (_: unknown, from: TailStart): void => void (peer.start = from);
  const call = { groupId: undefined, filters: ["a"], after: undefined, lastEventId, onConnected };
  const attachment = await cluster.run(cluster.node(node).broker.tail(call, peer));
  return Object.assign(peer, { end: () => cluster.run(attachment.end()) });
}

async function publish(...texts: readonly string[]): Promise<void> {
  for (const text of texts) await cluster.run(cluster.publish(0, "a", text));
  await cluster.clock.advance(2_000);
}

it("a tail that begins at a time is refused if the chain does not answer", async () => {
  await publish("1");
  isSilent = true;
  let code: unknown;
  const call = { groupId: undefined, filters: ["a"], after: "1970-01-01T00:00:00Z", lastEventId: undefined };
  const opened = cluster.node(0).broker.tail({ ...call, onConnected: () => {} }, new TailPeer());
  opened.catch((error: { readonly code?: number }) => (code = error.code));
  await cluster.clock.advance(20_000);
  expect(code).toBe(200_205);
});

const countSessions = async (): Promise<number> =>
  (await cluster.shared.store.sessions.listSessions({ after: undefined, limit: 100 })).length;

it("a tail continues at any other node, and leaves no session behind", async () => {
  const first = await tail(0);
  await publish("1", "2");
  await first.end();
  await publish("3");
  const second = await tail(1, first.lastId);
  await publish("4");
  await second.end();
  const third = await tail(2, second.lastId);
  await publish("5");
  await third.end();
  expect([first.texts, second.texts, third.texts]).toEqual([["1", "2"], ["3", "4"], ["5"]]);
  expect(await countSessions()).toBe(0);
});

it("a tail reports whether its node can reach the database", async () => {
  const tails: { readonly isStuck: boolean }[] = [];
  for (const index of [0, 1, 2]) {
    const call = { groupId: undefined, filters: ["a"], after: undefined, lastEventId: undefined };
    const onConnected = (session: { readonly isStuck: boolean }): void => void tails.push(session);
    await cluster.run(cluster.node(index).broker.tail({ ...call, onConnected }, new TailPeer()));
  }
  const stuck = (): readonly boolean[] => tails.map(({ isStuck }) => isStuck);
  const { gate } = cluster.node(1);
  gate.cut("refused");
  await publish("1");
  expect(stuck()).toEqual([false, true, false]);
  gate.heal();
  await publish("2");
  expect(stuck()).toEqual([false, false, false]);
});

it("the store forgets the tail of a killed node", async () => {
  await tail(1);
  expect(await countSessions()).toBe(1);
  cluster.kill(1);
  await cluster.clock.advance(60_000);
  expect(await countSessions()).toBe(0);
});

it("a tail at any node misses no event of the new branch", async () => {
  const tails = [await tail(0), await tail(1), await tail(2)];
  await publish("1", "2", "3");
  const before = cluster.chain.head - 2;
  cluster.chain.cutBack(before);
  cluster.chain.sealEmpty();
  cluster.chain.sealEmpty();
  cluster.chain.sealEmpty();
  await publish("another");
  for (const peer of tails) {
    expect(new Set(peer.rollBacks.map((to) => Math.floor(to / 2 ** 20)))).toEqual(new Set([before]));
    expect(peer.texts).toEqual(["1", "2", "3", "another"]);
    await peer.end();
  }
});
