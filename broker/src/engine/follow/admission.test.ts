import { BrokerError } from "@stele/wire";
import { afterEach, describe, expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import type { Address } from "../../domain/topic.ts";
import { MemoryChain } from "../../ledger/memory/memory-chain.ts";
import { createMemoryLedger } from "../../ledger/memory/memory-ledger.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { silentLogger } from "../../lib/logger.ts";
import type { Ledger, Outage } from "../../ports/ledger.ts";
import { noMetrics } from "../../ports/metrics.ts";
import { createMemoryCluster, type MemoryCluster } from "../../store/memory/memory-cluster.ts";
import { createBroker } from "../create-broker.ts";
import { asCaller, type CalledBroker } from "../testing/as-caller.ts";
import { defaultEngineLimits } from "../limits.ts";
import { RecordingSink } from "../testing/recording-sink.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";

const signers: readonly Address[] = ["11", "22", "33"].map((digits) => `0x${digits.repeat(20)}` as const);
const record = { chainId: 1, genesisHash: "0x00", registryAddress: "0x00" } as const;

/** A node whose view of the chain a test can disturb. */
interface Node {
  readonly broker: CalledBroker;
  /** Number of starts of the ledger. */
  starts: number;
  /** If set, the start of the ledger throws this error. */
  failure: Error | undefined;
  outage: Outage | undefined;
  /** The start of the ledger waits for this promise. */
  held: Promise<void>;
  /** If set, following the chain throws this error. */
  broken: Error | undefined;
}

let clock: VirtualClock;
let chain: MemoryChain;
let shared: MemoryCluster;
const nodes: Node[] = [];
afterEach(async () => {
  const stopped = nodes.splice(0).map(async ({ broker }) => broker.stop(1_000));
  await clock.advance(2_000);
  await Promise.all(stopped);
});

function begin(): void {
  clock = new VirtualClock();
  chain = new MemoryChain({ clock });
  shared = createMemoryCluster({ clock });
}

/** Starts a node without waiting for its start. */
function launch(index: number, options: { readonly sender?: Address | undefined } = {}): Node {
  const sender = options.sender ?? signers[index];
  const ledger = createMemoryLedger({ groupId: defaultGroupId, chain, isFinal: false, ...(sender && { sender }) });
  let uuids = 0;
  const running = createBroker({
    ledgers: [ledger],
    store: shared.store,
    sink: new RecordingSink(),
    clock,
    randomness: {
      fraction: () => 0,
      bytes: (count) => new Uint8Array(count),
      uuid: () => `${index}0000000-0000-4000-8000-${String((uuids += 1)).padStart(12, "0")}`,
    },
    metrics: noMetrics,
    logger: silentLogger,
    limits: defaultEngineLimits,
    defaultGroupId,
    extensionPrefix: "svc-",
    hasCoordinator: true,
    cluster: { coordinator: shared.coordinator, address: `node-${index}:1`, records: shared.store },
  });
  const node: Node = {
    broker: asCaller(running),
    starts: 0,
    failure: undefined,
    outage: undefined,
    held: Promise.resolve(),
    broken: undefined,
  };
  disturb(ledger, node);
  nodes.push(node);
  void node.broker.start();
  return node;
}

function disturb(ledger: Ledger, node: Node): void {
  const start = ledger.start.bind(ledger);
  const view = ledger.view.bind(ledger);
  const follow = ledger.follow.bind(ledger);
  ledger.follow = async function* (...call) {
    for await (const step of follow(...call)) {
      if (node.broken !== undefined) throw node.broken;
      yield step;
    }
  };
  ledger.view = () => ({ ...view(), outage: node.outage });
  ledger.start = async () => {
    node.starts += 1;
    await node.held;
    if (node.failure !== undefined) throw node.failure;
    await start();
    await shared.store.saveGroupRecord(defaultGroupId, record);
  };
}

const healthOf = (node: Node) => node.broker.health()[0];
const follows = (): readonly boolean[] => nodes.map((node) => healthOf(node)?.role === "follows");

describe("a signer", () => {
  it("belongs to one node: the group stays closed on a second node with the same signer until the first one leaves", async () => {
    begin();
    const first = launch(0);
    await clock.advance(1_000);
    const second = launch(1, { sender: signers[0] });
    await clock.advance(6_000);
    expect(healthOf(first)).toMatchObject({ ready: true });
    expect(healthOf(second)).toMatchObject({
      ready: false,
      reason: expect.stringContaining("node node-0:1 signs with 0x11"),
    });
    await expect(second.broker.open({ topic: "a", groupId: undefined })).rejects.toThrow(
      "group 1 is not up: node node-0:1",
    );
    expect(second.starts).toBe(0);
    nodes.shift();
    const stopped = first.broker.stop(1_000);
    await clock.advance(defaultEngineLimits.startDelayMsMax);
    await stopped;
    expect(healthOf(second)).toMatchObject({ ready: true });
  });

  it("is reserved again under each membership; if another node has it by then, the group stays closed until that node leaves", async () => {
    begin();
    const first = launch(0);
    await clock.advance(1_000);
    const [member] = await shared.coordinator.listNodes();
    if (member === undefined) throw new Error("nobody joined");
    await shared.coordinator.leave(member.id);
    const second = launch(1, { sender: signers[0] });
    await clock.advance(8_000);
    expect(healthOf(second)).toMatchObject({ ready: true });
    expect(healthOf(first)).toMatchObject({
      ready: false,
      reason: expect.stringContaining("node node-1:1 signs with 0x11"),
    });
    nodes.pop();
    const stopped = second.broker.stop(1_000);
    await clock.advance(3_000);
    await stopped;
    expect(healthOf(first)).toMatchObject({ ready: true });
  });
});

describe("a ledger whose chain has no registry", () => {
  it("is started by one node; the other nodes wait and report why", async () => {
    begin();
    const held = createDeferred<void>();
    for (const index of [0, 1, 2]) launch(index).held = held.promise;
    await clock.advance(10_000);
    expect(nodes.filter(({ starts }) => starts === 1)).toHaveLength(1);
    for (const node of nodes.filter(({ starts }) => starts === 0))
      expect(healthOf(node)?.reason).toContain("another node deploys the topic registry");
    held.resolve();
    await clock.advance(defaultEngineLimits.startDelayMsMax);
    expect(nodes.map(({ starts }) => starts)).toEqual([1, 1, 1]);
    expect(nodes.map((node) => healthOf(node)?.ready)).toEqual([true, true, true]);
  });

  it("is started by a second node if the first one cannot reach the chain", async () => {
    begin();
    const first = launch(0);
    first.failure = new BrokerError("chainUnreachable", { details: "http://chain: the connection was refused" });
    await clock.advance(1_000);
    const second = launch(1);
    await clock.advance(6_000);
    expect(healthOf(second)).toMatchObject({ ready: true });
    expect(healthOf(first)?.reason).toContain("the connection was refused");
  });
});

describe("a follower whose chain does not answer or cannot be read", () => {
  it("gives the lease to another node, and does not take it back", async () => {
    begin();
    for (const index of [0, 1]) launch(index);
    await clock.advance(2_000);
    const place = follows().indexOf(true);
    const away = nodes[place];
    if (away === undefined) throw new Error("nobody follows");
    away.outage = { reason: "http://chain: no answer", since: clock.now() };
    await clock.advance(defaultEngineLimits.outageToleranceMs - 1);
    expect(follows()[place]).toBe(true);
    await clock.advance(2_000);
    expect(follows()).toEqual([place !== 0, place !== 1]);
    chain.sealEmpty();
    await clock.advance(60_000);
    expect(follows()).toEqual([place !== 0, place !== 1]);
    expect(nodes.map((node) => healthOf(node)?.indexedBlock)).toEqual([chain.head, chain.head]);
  });

  it("gives the lease to another node within seconds even if the database refuses the first two releases", async () => {
    begin();
    for (const index of [0, 1]) launch(index);
    await clock.advance(2_000);
    const place = follows().indexOf(true);
    const away = nodes[place];
    if (away === undefined) throw new Error("nobody follows");
    const { coordinator } = shared;
    const release = coordinator.releaseLease.bind(coordinator);
    let refusals = 0;
    coordinator.releaseLease = async (lease) => {
      refusals += 1;
      if (refusals <= 2) throw new BrokerError("storeUnreachable");
      await release(lease);
    };
    away.outage = { reason: "http://chain: no answer", since: clock.now() };
    await clock.advance(defaultEngineLimits.outageToleranceMs + 5_000);
    expect(follows()).toEqual([place !== 0, place !== 1]);
    expect(refusals).toBe(3);
  });

  it("gives the lease to another node when the chain answers but cannot be read", async () => {
    begin();
    const first = launch(0);
    first.broken = new Error("the endpoint keeps no logs");
    await clock.advance(1_000);
    const second = launch(1);
    await clock.advance(6_000);
    expect(follows()).toEqual([false, true]);
    expect(healthOf(second)).toMatchObject({ ready: true });
    expect(healthOf(first)).toMatchObject({ ready: true, indexedBlock: chain.head });
  });

  it("with no other node, follows again after an outage", async () => {
    begin();
    const only = launch(0);
    await clock.advance(2_000);
    only.outage = { reason: "http://chain: no answer", since: clock.now() };
    const seen = new Set<boolean | undefined>();
    for (let second = 0; second < 30; second += 1) {
      await clock.advance(1_000);
      seen.add(follows()[0]);
    }
    expect(seen).toEqual(new Set([true, false]));
    only.outage = undefined;
    await clock.advance(defaultEngineLimits.outageToleranceMs + 1_000);
    expect(follows()).toEqual([true]);
  });
});
