import { expect, test } from "vitest";
import type { Address } from "../../../domain/topic.ts";
import { type LogFields, silentLogger } from "../../../lib/logger.ts";
import type { Clock } from "../../../ports/clock.ts";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { BatchVerifier, type UnverifiedBatch } from "./batch-verifier.ts";
import { BlockReader, type Round } from "./block-reader.ts";
import { logSignatures, publishedSignature } from "./parse-log.ts";
import { Rpc } from "../endpoint/rpc.ts";
import { FakeNode } from "../testing/fake-node.ts";

const registry: Address = `0x${"12".repeat(20)}`;
const unaborted = new AbortController().signal;

/** A reader of a chain with a log in each block after the first. */
function createReader(blocks: number) {
  const node = new FakeNode(registry);
  for (let mark = 1; mark <= blocks; mark += 1) node.seal([mark]);
  const rpc = new Rpc(node);
  const clock = new VirtualClock();
  const warnings: string[] = [];
  const warn = (message: string, fields: LogFields = {}): void =>
    void warnings.push(`${message} ${String(fields["blockNumber"])} ${String(fields["error"])}`);
  const logger = { ...silentLogger, warn };
  const reader = new BlockReader({ rpc, clock, logger, registry, account: registry, verifier: new BatchVerifier() });
  return { node, rpc, clock, reader, warnings };
}

function marksOf(round: Round | undefined): readonly number[] | undefined {
  return round?.blocks.flatMap(({ entries }) => entries.map(({ address }) => Number(address)));
}

/** Makes the node leave out the logs of a block in as many answers as `times` returns for its mark. */
function leaveOut(node: FakeNode, times: (mark: number) => number): void {
  const { request } = node;
  const asked = new Map<number, number>();
  node.request = async (call) => {
    const answer = await request.call(node, call);
    if (call.method !== "eth_getLogs") return answer;
    const [{ topics }] = answer as readonly [{ readonly topics: readonly string[] }]; // Each block has one log.
    const mark = Number(topics[1]);
    asked.set(mark, (asked.get(mark) ?? 0) + 1);
    return (asked.get(mark) ?? 0) <= times(mark) ? [] : answer;
  };
}

test("rejects logs of a range from a chain node that lacks the last block of the range", async () => {
  const { node, rpc, reader } = createReader(400);
  const range = {
    after: await rpc.header(200),
    to: 400,
    blocksMax: 16,
    head: 400,
    header: undefined,
    ended: unaborted,
  };
  node.behind = (method) => (method === "eth_getLogs" ? 350 : 0);
  await expect(reader.read(range)).rejects.toMatchObject({ kind: "refused" });
  node.behind = () => 0;
  expect((await reader.read(range))?.blocks.flatMap(({ entries }) => entries)).toHaveLength(16);
});

test("rejects the logs of a range if one log comes from another block with the same number", async () => {
  const { node, rpc, reader } = createReader(400);
  const after = await rpc.header(0);
  const range = { after, to: 400, blocksMax: 16, head: 400, header: undefined, ended: unaborted };
  const { requestAll } = node;
  node.requestAll = async (calls) => {
    const [header, logs] = await requestAll.call(node, calls);
    const [first, ...others] = logs as readonly [object]; // Each block has one log.
    return [header, [first, { ...first, blockHash: after.hash }, ...others]];
  };
  await expect(reader.read(range)).rejects.toThrow("block 1 changed while it was read");
});

test("pauses once for all blocks of a round that lack promised logs, and warns of a block that still lacks them afterwards", async () => {
  const { node, rpc, clock, reader, warnings } = createReader(10);
  leaveOut(node, (mark) => (mark === 1 ? 0 : mark === 7 ? 2 : 1));
  const range = { after: await rpc.header(0), to: 10, blocksMax: 16, head: 10, header: undefined, ended: unaborted };
  const reading = reader.read(range);
  await clock.advance(500);
  expect(marksOf(await reading)).toEqual([1, 2, 3, 4, 5, 6, 8, 9, 10]);
  expect(warnings).toEqual([expect.stringMatching(/^promised logs not returned 7 Error: .*use an endpoint/)]);
  expect(marksOf(await reader.read(range))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
});

test("asks each endpoint for the logs of an old range if the first one has none", async () => {
  const { node, rpc, reader } = createReader(400);
  const { requestAll } = node;
  node.requestAll = async (calls) => {
    const [header, logs] = await requestAll.call(node, calls);
    return [header, calls.at(-1)?.isPromised === true ? logs : []];
  };
  const range = {
    after: await rpc.header(0),
    to: 400,
    blocksMax: 16,
    head: 400,
    header: undefined,
    ended: unaborted,
  };
  expect(marksOf(await reader.read(range))).toHaveLength(16);
});

test("asks each endpoint for promised logs that the first one left out, but only in the second pass", async () => {
  const { node, rpc, clock, reader, warnings } = createReader(2);
  const { request } = node;
  const promised: unknown[] = [];
  node.request = async (call) => {
    if (call.method !== "eth_getLogs") return request.call(node, call);
    promised.push(call.isPromised);
    return call.isPromised === true ? request.call(node, call) : [];
  };
  const range = { after: await rpc.header(0), to: 2, blocksMax: 16, head: 2, header: undefined, ended: unaborted };
  const reading = reader.read(range);
  await clock.advance(500);
  expect(marksOf(await reading)).toEqual([1, 2]);
  expect([promised, warnings]).toEqual([[false, false, true, true], []]);
});

test("asks each endpoint for promised logs, even if one refuses a request for all of them", async () => {
  const { node, rpc, clock, reader } = createReader(1);
  const { request } = node;
  node.request = async (call) => {
    if (call.method !== "eth_getLogs") return request.call(node, call);
    const [{ topics }] = call.params as readonly [{ readonly topics: readonly (readonly string[])[] }]; // The reader sends these.
    if (topics[0]?.length === logSignatures.length) throw Object.assign(new Error("too many logs"), { code: -32005 });
    return call.isPromised === true ? request.call(node, call) : [];
  };
  const range = { after: await rpc.header(0), to: 1, blocksMax: 16, head: 1, header: undefined, ended: unaborted };
  const reading = reader.read(range);
  await clock.advance(500);
  expect(marksOf(await reading)).toEqual([1]);
});

test("ends the pause if the reading ends", async () => {
  const { node, rpc, clock, reader } = createReader(1);
  leaveOut(node, () => 1);
  const ending = new AbortController();
  const range = { after: await rpc.header(0), to: 1, blocksMax: 16, head: 1, header: undefined };
  const reading = reader.read({ ...range, ended: ending.signal });
  await clock.settle();
  expect(clock.timers).toBe(1);
  ending.abort();
  expect(marksOf(await reading)).toEqual([1]);
});

/** Verifies each batch in 6 ms, and lists what happens. */
class SlowVerifier extends BatchVerifier implements Clock {
  readonly seen: string[] = [];
  readonly #clock = new VirtualClock();
  #now = 0;

  override fault(batch: UnverifiedBatch): ReturnType<BatchVerifier["fault"]> {
    this.#now += 6;
    this.seen.push("batch");
    return super.fault(batch);
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  after(delayMs: number, action: () => void): () => void {
    return this.#clock.after(delayMs, action);
  }

  soon(action: () => void): void {
    setImmediate(() => {
      if (this.seen.at(-1) !== "turn") this.seen.push("turn");
      action();
    });
  }
}

test("lets other work run between two batches, of one block or of two, once they have taken 5 ms", async () => {
  const node = new FakeNode(registry);
  node.seal([1, 2, 3]);
  node.seal([4]);
  const { request } = node;
  node.request = async (call) => {
    const answer = await request.call(node, call);
    if (call.method !== "eth_getLogs") return answer;
    const logs = answer as readonly { readonly topics: readonly string[] }[]; // As FakeNode makes them.
    return logs.map((log) => ({ ...log, topics: [publishedSignature, ...log.topics.slice(1)] }));
  };
  const rpc = new Rpc(node);
  const slow = new SlowVerifier();
  const options = { rpc, clock: slow, logger: silentLogger, registry, account: registry };
  const reader = new BlockReader({ ...options, verifier: slow });
  const range = { after: await rpc.header(0), to: 2, blocksMax: 16, head: 2, header: undefined, ended: unaborted };
  await reader.read(range);
  expect(slow.seen).toEqual(["batch", "turn", "batch", "turn", "batch", "turn", "batch"]);
});

test("lets other work run between batches that are read again", async () => {
  const node = new FakeNode(registry);
  node.seal([1, 2, 3, 4]);
  const clock = new VirtualClock();
  let now = 0;
  let turns = 0;
  const slow: Clock = {
    now: () => now,
    monotonic: () => (now += 6),
    after: (delayMs, action) => clock.after(delayMs, action),
    soon: (action) => {
      turns += 1;
      setImmediate(action);
    },
  };
  const verifier = new BatchVerifier();
  const options = { rpc: new Rpc(node), clock: slow, logger: silentLogger, registry, account: registry };
  const places = [0, 1, 2, 3].map((logIndex) => ({ blockNumber: 1, logIndex }));
  await new BlockReader({ ...options, verifier }).readCommitted(places, unaborted);
  expect(turns).toBeGreaterThan(3);
});
