import { encodeEvents } from "@stele/wire";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { topicAddress } from "../../ledger/memory/memory-chain.ts";
import type { Ledger } from "../../ports/ledger.ts";
import { pause } from "../../lib/pause.ts";
import { TestCluster } from "../testing/test-cluster.ts";

const topic = { topic: "a", groupId: undefined };
const never = new Promise<never>(() => {});
let cluster: TestCluster;
let endpoints: Endpoint[];
afterEach(() => cluster.stopAll());

/** The endpoint of one node. A test can make it answer without newer blocks, name blocks without returning them, or stop answering. */
class Endpoint {
  /** Number of blocks at the head that a reorg is about to remove. Only `finalBlockNumber` counts them. */
  orphans = 0;
  readonly #ledger: Ledger;
  #newest = Number.POSITIVE_INFINITY;
  #newestGiven = Number.POSITIVE_INFINITY;
  #isSilent = false;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  get ledger(): Ledger {
    const ledger = this.#ledger;
    const finalBlockNumber: Ledger["finalBlockNumber"] = async (signal) =>
      this.#isSilent ? await never : Math.min(this.#newest, (await ledger.finalBlockNumber(signal)) + this.orphans);
    const findBlockHash: Ledger["findBlockHash"] = async (blockNumber, signal) =>
      blockNumber > this.#newest ? undefined : ledger.findBlockHash(blockNumber, signal);
    const follow: Ledger["follow"] = (after, signal) => this.#follow(ledger.follow(after, signal), signal);
    const own = { finalBlockNumber, findBlockHash, follow };
    return new Proxy(ledger, {
      get: (_, name) => {
        const value: unknown = name in own ? Reflect.get(own, name) : Reflect.get(ledger, name, ledger);
        return typeof value === "function" ? (value.bind(ledger) as unknown) : value;
      },
    });
  }

  stopAt(blockNumber: number): void {
    this.#newest = blockNumber;
  }

  giveUpTo(blockNumber: number): void {
    this.#newestGiven = blockNumber;
  }

  /** From now on `finalBlockNumber` neither succeeds nor fails, and `follow` returns no block. */
  fallSilent(): void {
    this.#isSilent = true;
    this.#newestGiven = -1;
  }

  goOn(): void {
    this.#newest = Number.POSITIVE_INFINITY;
    this.#newestGiven = Number.POSITIVE_INFINITY;
  }

  async *#follow(steps: ReturnType<Ledger["follow"]>, signal: AbortSignal): ReturnType<Ledger["follow"]> {
    for await (const step of steps) {
      if (step.kind === "reorganised") throw new Error("the chain takes nothing back");
      for (const block of step.blocks) {
        const isHeld = (): boolean => block.number > Math.min(this.#newest, this.#newestGiven);
        while (!signal.aborted && isHeld()) await pause(cluster.clock, 100, signal);
        if (signal.aborted) return;
        yield { kind: "blocks", blocks: [block] };
      }
    }
  }
}

async function start(count: number): Promise<void> {
  endpoints = [];
  const toLedger = (ledger: Ledger, index: number): Ledger => {
    const endpoint = new Endpoint(ledger);
    endpoints[index] = endpoint;
    return endpoint.ledger;
  };
  cluster = await TestCluster.start(count, { toLedger });
  await cluster.run(cluster.node(0).broker.open(topic));
}

function followers(): readonly number[] {
  return cluster.nodes.flatMap(({ broker }, index) => (broker.health()[0]?.role === "follows" ? [index] : []));
}

/** The index of the only node that follows. @throws Error if not exactly one node follows. */
function follower(): number {
  const [index, ...others] = followers();
  if (index === undefined || others.length > 0) throw new Error("no node follows, or several do");
  return index;
}

function indexed(): readonly (number | undefined)[] {
  return cluster.nodes.map(({ broker }) => broker.health()[0]?.indexedBlock);
}

/** Commits an event by a transaction that no node of the cluster sent. */
function publishFromOutside(): void {
  const events = encodeEvents([{ content: Buffer.from("x"), extensions: [] }]);
  cluster.chain.publish([{ address: topicAddress(parseTopicName("a")), count: 1, events }]);
}

it("a node starts although a reorg has removed the newest block that it saw, while the chain is idle", async () => {
  await start(2);
  cluster.launch(2);
  const [, , endpoint] = endpoints;
  if (endpoint !== undefined) endpoint.orphans = 1;
  await cluster.clock.advance(2_000);
  const { broker } = cluster.node(2);
  expect(broker.health()[0]).toMatchObject({ ready: false });
  if (endpoint !== undefined) endpoint.orphans = 0;
  await cluster.clock.advance(10_000);
  expect(broker.health()[0]).toMatchObject({ ready: true });
});

describe("a follower is replaced before the publishes of other nodes time out if its endpoint", () => {
  beforeEach(() => start(3));

  it.each([
    ["answers nothing", (endpoint?: Endpoint) => endpoint?.fallSilent()],
    ["names the newest block but does not return it", (endpoint?: Endpoint) => endpoint?.giveUpTo(cluster.chain.head)],
  ])("%s", async (_, hang) => {
    await cluster.clock.advance(3_000);
    const stuck = follower();
    hang(endpoints[stuck]);
    const since = cluster.clock.now();
    const answers = [1, 2].map((step) => cluster.publish((stuck + step) % 3, "a", "1"));
    expect(await cluster.run(Promise.all(answers))).not.toContain("TIMEOUT");
    expect(cluster.clock.now() - since).toBeLessThan(27_000);
    expect(follower()).not.toBe(stuck);
  });
});

describe("a follower whose endpoint returns no new blocks", () => {
  beforeEach(() => start(3));

  it("releases the lease: another node follows, publishes through other nodes succeed, and each event is delivered once", async () => {
    const ids = [await cluster.run(cluster.subscribe(0, "a")), await cluster.run(cluster.subscribe(1, "a"))];
    await cluster.clock.advance(3_000);
    const stuck = follower();
    endpoints[stuck]?.stopAt(cluster.chain.head);
    const answers = [1, 2].map((step) => cluster.publish((stuck + step) % 3, "a", "1"));
    expect(await cluster.run(Promise.all(answers))).not.toContain("TIMEOUT");
    const next = follower();
    expect(next).not.toBe(stuck);
    expect(indexed()).toEqual([cluster.chain.head, cluster.chain.head, cluster.chain.head]);
    await cluster.clock.advance(60_000);
    endpoints[stuck]?.goOn();
    publishFromOutside();
    await cluster.clock.advance(60_000);
    expect(follower()).toBe(next);
    expect(ids.map((id) => cluster.sink.sequencesOf(id))).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ]);
  });

  it("passes the lease on until a node follows whose endpoint returns new blocks", async () => {
    const healthy = (follower() + 2) % 3;
    for (const [index, endpoint] of endpoints.entries()) if (index !== healthy) endpoint.stopAt(cluster.chain.head);
    publishFromOutside();
    await cluster.clock.advance(30_000);
    expect(follower()).toBe(healthy);
    expect(indexed()).toEqual([cluster.chain.head, cluster.chain.head, cluster.chain.head]);
  });

  it("releases the lease after 20 to 40 s if its endpoint names the newest block but does not return it", async () => {
    const stuck = follower();
    endpoints[stuck]?.giveUpTo(cluster.chain.head);
    publishFromOutside();
    await cluster.clock.advance(20_000);
    expect(follower()).toBe(stuck);
    await cluster.clock.advance(20_000);
    expect(follower()).not.toBe(stuck);
    expect(indexed()).toEqual([cluster.chain.head, cluster.chain.head, cluster.chain.head]);
  });

  it("is reported in the health of another node if it gets no hint, until its endpoint returns new blocks", async () => {
    for (const { gate } of cluster.nodes) gate.notify = () => {};
    const stuck = follower();
    endpoints[stuck]?.stopAt(cluster.chain.head);
    publishFromOutside();
    await cluster.clock.advance(30_000);
    expect(follower()).toBe(stuck);
    const { broker } = cluster.node((stuck + 1) % 3);
    const head = cluster.chain.head;
    const reason = `the index stands still at block ${head - 1}, and block ${head} has long been final`;
    expect(broker.health()[0]).toMatchObject({ ready: false, reason: expect.stringContaining(reason) });
    endpoints[stuck]?.goOn();
    await cluster.clock.advance(2_000);
    expect(broker.health()[0]).toMatchObject({ ready: true });
  });
});

describe("a follower keeps the lease", () => {
  beforeEach(() => start(3));

  it("while its chain is repeatedly a few seconds behind those of others", async () => {
    const first = follower();
    for (let round = 0; round < 40; round += 1) {
      endpoints[first]?.stopAt(cluster.chain.head);
      publishFromOutside();
      await cluster.clock.advance(3_700);
      expect(followers()).toEqual([first]);
      endpoints[first]?.goOn();
      await cluster.clock.advance(round * 100);
    }
    expect(indexed()).toEqual([cluster.chain.head, cluster.chain.head, cluster.chain.head]);
  });

  it.each(["stopAt", "giveUpTo"] as const)(
    "while the index slowly approaches the head that other nodes see (%s)",
    async (how) => {
      const first = follower();
      let number = cluster.chain.head;
      endpoints[first]?.[how](number);
      for (let count = 0; count < 20; count += 1) publishFromOutside();
      await cluster.clock.advance(how === "stopAt" ? 3_000 : 12_000);
      for (let count = 0; count < 20; count += 1) {
        endpoints[first]?.[how]((number += 1));
        await cluster.clock.advance(3_000);
        expect(followers()).toEqual([first]);
      }
      expect(indexed()).toEqual([cluster.chain.head, cluster.chain.head, cluster.chain.head]);
    },
  );

  it("while the chain is idle and late reports of indexed blocks arrive", async () => {
    const first = follower();
    for (let round = 0; round < 20; round += 1) {
      await cluster.shared.coordinator.reportAhead({ groupId: defaultGroupId, blockNumber: cluster.chain.head });
      await cluster.clock.advance(7_000);
      expect(followers()).toEqual([first]);
    }
  });

  it("after a reorg has removed a block that only the other nodes' chain had, while the chain is idle", async () => {
    const first = follower();
    const others = endpoints.filter((_, index) => index !== first);
    for (const endpoint of others) endpoint.orphans = 1;
    await cluster.clock.advance(6_000);
    for (const endpoint of others) endpoint.orphans = 0;
    for (let round = 0; round < 30; round += 1) {
      await cluster.clock.advance(2_000);
      expect(followers()).toEqual([first]);
      expect(cluster.nodes.map(({ broker }) => broker.health()[0]?.ready)).toEqual([true, true, true]);
    }
  });

  it("if it indexes the reported block after 15 s", async () => {
    const first = follower();
    endpoints[first]?.giveUpTo(cluster.chain.head);
    publishFromOutside();
    await cluster.clock.advance(15_000);
    endpoints[first]?.goOn();
    await cluster.clock.advance(60_000);
    expect(followers()).toEqual([first]);
    expect(indexed()).toEqual([cluster.chain.head, cluster.chain.head, cluster.chain.head]);
  });
});
