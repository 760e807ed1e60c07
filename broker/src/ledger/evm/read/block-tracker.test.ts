import { toQuantity } from "@stele/eth/node";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { silentLogger } from "../../../lib/logger.ts";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import type { Address } from "../../../domain/topic.ts";
import { EndpointSet } from "../endpoint/endpoint-set.ts";
import { Rpc } from "../endpoint/rpc.ts";
import { FakeNode as HttpNode } from "../endpoint/testing/fake-node.ts";
import { FastClock } from "../endpoint/testing/fast-clock.ts";
import { FakeNode } from "../testing/fake-node.ts";
import { BatchVerifier } from "./batch-verifier.ts";
import { BlockReader } from "./block-reader.ts";
import { BlockTracker } from "./block-tracker.ts";
import { type Finality, FinalityPolicy } from "./finality.ts";

const registry: Address = `0x${"12".repeat(20)}`;

/** A chain with finalized blocks. Records the blocks of requests for headers. */
class CountingNode extends FakeNode {
  headers: unknown[] = [];
  /** How many of the newest blocks are not finalized. */
  confirmations = 2;

  override async request(call: Parameters<FakeNode["request"]>[0]): Promise<unknown> {
    const { method, params = [] } = call;
    if (method === "eth_getBlockByNumber") this.headers.push(params[0]);
    if (params[0] !== "finalized") return super.request(call);
    const final = this.head - this.confirmations;
    return final < 0 ? null : super.request({ method, params: [toQuantity(final), false] });
  }
}

/** A chain node that is too busy for the first `busyFor` searches for logs. Records the number of blocks of each search. */
class BusyNode extends CountingNode {
  busyFor = 0;
  readonly spans: number[] = [];

  override async requestAll(calls: Parameters<FakeNode["requestAll"]>[0]): Promise<readonly unknown[]> {
    return Promise.all(calls.map(async (call) => this.request(call)));
  }

  override async request(call: Parameters<FakeNode["request"]>[0]): Promise<unknown> {
    const { fromBlock, toBlock } = (call.params?.[0] ?? {}) as { fromBlock?: string; toBlock?: string }; // The ledger sends these fields.
    if (call.method !== "eth_getLogs" || fromBlock === undefined) return super.request(call);
    this.spans.push(Number(toBlock) - Number(fromBlock) + 1);
    this.busyFor -= 1;
    if (this.busyFor < 0) return super.request(call);
    throw Object.assign(new Error("limit exceeded: too many calls of the chain are waiting, try later"), {
      code: -32005,
    });
  }
}

/** Makes the endpoint serve this chain. */
function serve(endpoint: HttpNode, chain: FakeNode): void {
  endpoint.takesBatches = false;
  endpoint.answer = async (call) => {
    if (call.method === "eth_chainId") return { id: call.id, result: "0x1" };
    const result = call.method === "eth_blockNumber" ? toQuantity(chain.head) : await chain.request(call);
    return { id: call.id, result };
  };
}

describe("a block tracker", () => {
  const clock = new VirtualClock();
  let node: CountingNode;
  let rpc: Rpc;
  let tracker: BlockTracker;
  let marks: number[];
  /** How often the tracker reported heads of another chain. */
  let foreign: number;
  beforeEach(() => {
    node = new CountingNode(registry);
    rpc = new Rpc(node);
    marks = [];
    foreign = 0;
    for (let mark = 1; mark <= 5; mark += 1) node.seal([mark]);
  });
  afterEach(async () => tracker.stop());

  async function start(finality: Finality): Promise<void> {
    const reader = new BlockReader({
      rpc,
      clock,
      logger: silentLogger,
      registry,
      account: registry,
      verifier: new BatchVerifier(),
    });
    const policy = new FinalityPolicy(rpc, finality);
    const { genesisHash } = node;
    const options = { finality: policy, genesisHash, isFinal: false, clock, logger: silentLogger };
    tracker = new BlockTracker({ rpc, reader, ...options });
    tracker.listen({
      onRound: ({ blocks }) => {
        for (const { entries } of blocks) marks.push(...entries.map(({ address }) => Number(address)));
      },
      onReorganised: () => {},
      onForeign: () => void (foreign += 1),
    });
    await tracker.start(await rpc.header("latest"));
  }

  /** Sets up an endpoint that serves `node`. The returned function makes it serve another chain behind the same connection. */
  function serveInTurn(): (chain: CountingNode) => void {
    let served = node;
    rpc = new Rpc({
      request: async (call) => served.request(call),
      requestAll: async (calls) => served.requestAll(calls),
    });
    return (chain) => {
      served = chain;
    };
  }

  /** Another chain, whose marks begin at 101. */
  function otherChain(lastMark: number): CountingNode {
    const other = new CountingNode(registry, 100);
    for (let mark = 101; mark <= lastMark; mark += 1) other.seal([mark]);
    return other;
  }

  it.each<readonly [Finality, readonly unknown[], number]>([
    ["latest", [], 6],
    ["finalized", ["finalized"], 4],
    [2, ["0x4"], 4],
  ])("asks for no header, or for one, for each block under finality %s", async (finality, headers, last) => {
    await start(finality);
    node.seal([6]);
    const head = await rpc.header("latest");
    node.headers = [];
    tracker.onHead(head);
    await clock.settle();
    expect(tracker.tail).toBe(last);
    expect(marks).toEqual([last]);
    expect(node.headers).toEqual(headers);
  });

  it("asks for the header of an announced head after a failure, since the head may be gone", async () => {
    await start("latest");
    node.seal([6]);
    const head = await rpc.header("latest");
    node.cutBack(5);
    node.seal([7]);
    node.headers = [];
    tracker.onHead(head);
    await clock.advance(1000);
    expect(marks).toEqual([7]);
    expect(node.headers).toEqual(["0x6"]);
  });

  it("begins after the first final block if there was none at its start, and leaves earlier blocks to followers", async () => {
    node.confirmations = 6;
    await start("finalized");
    const follower = tracker.follow(undefined, new AbortController().signal);
    const step = follower.next();
    node.confirmations = 2;
    for (const mark of [6, 7]) {
      node.seal([mark]);
      tracker.onHead(await rpc.header("latest"));
      await clock.settle();
    }
    expect([tracker.tail, marks]).toEqual([5, [5]]);
    const numbers = [0, 1, 2, 3, 4].map((number) => ({ number }));
    expect((await step).value).toMatchObject({ kind: "blocks", blocks: numbers });
    expect((await follower.next()).value).toMatchObject({ kind: "blocks", blocks: [{ number: 5 }] });
  });

  it("reads a block that becomes final although no newer block follows", async () => {
    await start("finalized");
    node.confirmations = 0;
    await clock.advance(15_000);
    expect([tracker.tail, marks]).toEqual([5, [4, 5]]);
  });

  it("forgets the blocks that it read if a reorg replaced all of them", async () => {
    await start(2);
    node.cutBack(0);
    for (let mark = 11; mark <= 18; mark += 1) node.seal([mark]);
    const replacement = await rpc.header(tracker.tail);
    tracker.onHead(await rpc.header("latest"));
    await clock.advance(1000);
    expect(tracker.tail).toBe(6);
    expect(await tracker.isRead(replacement)).toBe(true);
  });

  it("asks a busy endpoint again for as many blocks", async () => {
    const busy = new BusyNode(registry);
    node = busy;
    rpc = new Rpc(node);
    await start("latest");
    for (let mark = 1; mark <= 200; mark += 1) node.seal([mark]);
    busy.busyFor = 4;
    tracker.onHead(await rpc.header("latest"));
    await clock.advance(10_000);
    expect(tracker.tail).toBe(200);
    const [first = 0] = busy.spans;
    expect(first).toBeGreaterThan(1);
    expect(busy.spans.slice(0, 5)).toEqual(Array.from({ length: 5 }, () => first));
  });

  it("counts confirmations by heads of its own chain only, after the endpoint has served another chain", async () => {
    const serve = serveInTurn();
    const other = otherChain(108);
    await start(3);
    const { tail } = tracker;
    serve(other);
    tracker.onHead(await rpc.header("latest"));
    await clock.settle();
    expect(foreign).toBe(1);
    serve(node);
    await clock.advance(10_000);
    expect([tracker.tail, marks]).toEqual([tail, []]);
    node.seal([6]);
    tracker.onHead(await rpc.header("latest"));
    await clock.advance(10_000);
    expect([tracker.tail, tracker.outage]).toEqual([tail + 1, undefined]);
  });

  it("reads no block of another chain, and continues with its own chain when the endpoint serves it again", async () => {
    const serve = serveInTurn();
    const other = otherChain(120);
    await start("latest");
    serve(other);
    tracker.onHead(await rpc.header("latest"));
    await clock.advance(10_000);
    expect(tracker.tail).toBe(5);
    expect(tracker.outage?.reason).toContain("the endpoint serves another chain");
    expect(foreign).toBeGreaterThan(0);
    serve(node);
    node.seal([6]);
    tracker.onHead(await rpc.header("latest"));
    await clock.advance(10_000);
    expect(marks).toEqual([6]);
    expect(tracker.outage).toBeUndefined();
  });

  it("leaves an endpoint that serves another, higher chain behind the same connection", async () => {
    await using first = await HttpNode.start();
    await using second = await HttpNode.start();
    const other = new FakeNode(registry, 100);
    for (let mark = 101; mark <= 120; mark += 1) other.seal([mark]);
    for (const endpoint of [first, second]) serve(endpoint, node);
    const addresses = [first.url(), second.url()];
    const set = new EndpointSet({ addresses, clock: new FastClock(25), logger: silentLogger, timeoutMs: 20_000 });
    rpc = new Rpc(set);
    await start("latest");
    serve(first, other);
    tracker.onHead(await rpc.header("latest"));
    node.seal([6]);
    const check = async (): Promise<void> => {
      tracker.onHead(await rpc.header("latest"));
      await clock.advance(5000);
      expect(marks).toEqual([6]);
    };
    await vi.waitFor(check, { timeout: 20_000, interval: 10 });
    expect(await rpc.header(0)).toMatchObject({ hash: node.genesisHash });
    await set.close();
  });
});
