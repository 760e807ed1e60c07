import { type EmbeddedChain, startEmbeddedChain } from "@stele/chain";
import { Signer } from "@stele/eth/node";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { commonEventRules } from "../../../domain/event-rules.ts";
import { parseTopicName } from "../../../domain/topic-name.ts";
import type { CommittedBatch } from "../../../ports/ledger.ts";
import { toOutgoingBatch } from "../../../ports/testing/outgoing-batch.ts";
import type { EvmLedger } from "../evm-ledger.ts";
import { createEvmHarness, testKey } from "../testing/evm-harness.ts";
import { connectionLost, InterceptedProvider, passAll } from "../testing/intercepted-provider.ts";
import type { PushedBlock } from "./pushed-block.ts";

const unaborted = new AbortController().signal;
const name = parseTopicName("committed");
const count = 90;

/** Parameters of eth_getLogs; without a range, they name a block by its hash. */
interface LogQuery {
  readonly fromBlock?: string;
  readonly toBlock?: string;
}

let chain: EmbeddedChain;
let provider: InterceptedProvider;
let ledger: EvmLedger;
let committed: readonly CommittedBatch[];
/** The number of blocks in each eth_getLogs request; "one" for a request by hash. */
let asked: string[];

beforeAll(async () => {
  const genesisAccounts = ["key", "stranger to key"].map((key) => new Signer(testKey(key)).address);
  chain = await startEmbeddedChain({ file: ":memory:", chainId: 1337, genesisAccounts });
  provider = new InterceptedProvider(chain);
  ledger = createEvmHarness(provider, "key").createLedger();
  await ledger.start();
  await ledger.openTopic(name, unaborted);
  const { address } = await ledger.prepareOpening(name);
  for (let index = 0; index < count; index += 1) {
    const events = [{ content: Buffer.from(String(index)), extensions: [] }];
    await ledger.append([toOutgoingBatch({ topic: name, address, events })], unaborted);
  }
  committed = await readAll();
});

afterAll(async () => {
  await ledger.stop();
  await chain.stop();
});

beforeEach(() => {
  asked = [];
  provider.current = async (request, pass) => {
    if (request.method !== "eth_getLogs") return pass();
    const [{ fromBlock, toBlock }] = request.params as [LogQuery];
    asked.push(fromBlock === undefined ? "one" : `${Number(toBlock) - Number(fromBlock) + 1}`);
    return pass();
  };
});

async function readAll(): Promise<readonly CommittedBatch[]> {
  const head = await ledger.finalBlockNumber(unaborted);
  const found: CommittedBatch[] = [];
  for (let blockNumber = 0; blockNumber <= head; blockNumber += 1) {
    const { entries = [] } = (await ledger.readBlock(blockNumber, unaborted)) ?? {};
    for (const entry of entries) if (entry.kind === "events-committed") found.push({ ...entry, blockNumber });
  }
  return found;
}

/** Repeats the logs more often than a call may have arguments: V8 puts arguments on the stack. */
function repeatLogs(transaction: PushedBlock["transactions"][number]): PushedBlock["transactions"][number] {
  const copies = Array.from({ length: 200_000 }, () => transaction.logs);
  return { ...transaction, logs: copies.flat() };
}

test("neighbouring blocks share a request of up to 64 blocks", async () => {
  expect(committed).toHaveLength(count);
  expect(await ledger.readCommitted(committed, unaborted)).toEqual(committed);
  expect(asked).toEqual(["64", "26"]);
});

test("blocks more than 16 apart get separate requests", async () => {
  const some = [0, 20, 36, 80].flatMap((index) => committed[index] ?? []);
  expect(await ledger.readCommitted(some, unaborted)).toEqual(some);
  expect(asked).toEqual(["one", "17", "one"]);
});

test("halves a range that the endpoint refuses, and loses nothing", async () => {
  const { current } = provider;
  provider.current = async (request, pass) => {
    const answer = await current(request, pass);
    if (Number(asked.at(-1)) > 3 && request.method === "eth_getLogs") {
      throw Object.assign(new Error("block range too large"), { code: -32000 });
    }
    return answer;
  };
  expect(await ledger.readCommitted(committed, unaborted)).toEqual(committed);
  provider.current = passAll;
});

test("finds the block of a batch at any endpoint, newest blocks first, and none if the range lacks it", async () => {
  const { current } = provider;
  provider.current = async (request, pass) => {
    if (request.method === "eth_getLogs") expect(request.isPromised).toBe(true);
    return current(request, pass);
  };
  const [first, wanted, last] = [0, 70, count - 1].flatMap((index) => committed[index] ?? []);
  if (first === undefined || wanted === undefined || last === undefined) throw new Error("too few batches");
  const range = { from: first.blockNumber, to: last.blockNumber };
  expect(await ledger.findBatch(wanted, range, unaborted)).toBe(wanted.blockNumber);
  expect(await ledger.findBatch(wanted, { ...range, to: wanted.blockNumber - 1 }, unaborted)).toBeUndefined();
  expect(await ledger.findBatch({ ...wanted, firstSequence: count + 1 }, range, unaborted)).toBeUndefined();
  expect(await ledger.findBatch({ ...wanted, address: `0x${"ab".repeat(20)}` }, range, unaborted)).toBeUndefined();
  expect(asked).toEqual(["16", "32", "16", "32", "22", "16", "32", "42", "16", "32", "42"]);
  expect(await ledger.findBatch(wanted, { from: 1, to: 0 }, unaborted)).toBeUndefined();
  expect(asked).toHaveLength(11);
  provider.current = passAll;
});

test("looks for a batch in parts of the same size after an outage", async () => {
  const { current } = provider;
  const range = { from: 1, to: await ledger.finalBlockNumber(unaborted) };
  const unknown = { address: committed[0]?.address ?? "0x", firstSequence: count + 1 } as const;
  provider.current = () => Promise.reject(connectionLost());
  await expect(ledger.findBatch(unknown, range, unaborted)).rejects.toThrow();
  provider.current = current;
  expect(await ledger.findBatch(unknown, range, unaborted)).toBeUndefined();
  expect(asked.slice(0, -1)).toEqual(["16", "32"]);
  provider.current = passAll;
});

/** Makes the endpoint refuse requests for the logs of more than `blocks` blocks. */
function refuseOver(blocks: number, message: string): void {
  const { current } = provider;
  provider.current = async (request, pass) => {
    const answer = await current(request, pass);
    if (Number(asked.at(-1)) > blocks && request.method === "eth_getLogs")
      throw Object.assign(new Error(message), { code: -32000 });
    return answer;
  };
}

test("looks for a batch in parts that the endpoint answers", async () => {
  refuseOver(10, "block range too large");
  const range = { from: 1, to: await ledger.finalBlockNumber(unaborted) };
  for (const wanted of committed.slice(-20))
    expect(await ledger.findBatch(wanted, range, unaborted)).toBe(wanted.blockNumber);
  const last = { address: committed[0]?.address ?? "0x", firstSequence: count };
  asked = [];
  expect(await ledger.findBatch(last, range, unaborted)).toBe(committed.at(-1)?.blockNumber);
  expect(asked).toEqual(["16", "8"]);
  provider.current = async (request, pass) =>
    request.method === "eth_getLogs" ? Promise.reject(new Error("pruned")) : pass();
  await expect(
    ledger.findBatch({ address: `0x${"ab".repeat(20)}`, firstSequence: 1 }, range, unaborted),
  ).rejects.toMatchObject({ code: 200205 });
  provider.current = passAll;
});

test("finds a batch if the endpoint refuses larger parts in unknown words", async () => {
  refuseOver(10, "nobody may have that");
  const [first] = committed;
  if (first === undefined) throw new Error("too few batches");
  const range = { from: 1, to: await ledger.finalBlockNumber(unaborted) };
  expect(await ledger.findBatch(first, range, unaborted)).toBe(first.blockNumber);
  provider.current = passAll;
});

test("halves the number of blocks after each failure, and never raises it again in the same search", async () => {
  refuseOver(2, "nobody may have that");
  const range = { from: 1, to: await ledger.finalBlockNumber(unaborted) };
  const unknown = { address: committed[0]?.address ?? "0x", firstSequence: count + 1 } as const;
  expect(await ledger.findBatch(unknown, range, unaborted)).toBeUndefined();
  expect(asked.filter((blocks) => Number(blocks) > 2)).toEqual(["16", "8", "4"]);
  asked = [];
  expect(await ledger.findBatch(unknown, { from: 1, to: 6 }, unaborted)).toBeUndefined();
  expect(asked).toEqual(["6", "3", "1", "1", "1", "1", "1", "1"]);
  provider.current = passAll;
});

test("asks all endpoints for batches that the first one has deleted", async () => {
  provider.current = async (request, pass) =>
    request.method === "eth_getLogs" && request.isPromised !== true ? [] : pass();
  const some = [0, 20, 36, 80].flatMap((index) => committed[index] ?? []);
  expect(await ledger.readCommitted(some, unaborted)).toEqual(some);
  provider.current = passAll;
});

test("omits a batch that the endpoint has pruned, and returns the rest", async () => {
  const gone = committed[10]?.blockNumber;
  provider.current = async (request, pass) => {
    const answer = await pass();
    if (request.method !== "eth_getLogs") return answer;
    return (answer as { blockNumber: string }[]).filter(({ blockNumber }) => Number(blockNumber) !== gone);
  };
  expect(await ledger.readCommitted(committed, unaborted)).toEqual(committed.filter((_, index) => index !== 10));
  provider.current = passAll;
});

test("returns the batches before a damaged block of the embedded chain, and fails with 200205 if that block comes first", async () => {
  const place = committed[10];
  provider.readBlocks = async ({ from, to }) => {
    if (place !== undefined && from <= place.blockNumber && place.blockNumber <= to) throw new Error("block damaged");
    return chain.readBlocks({ from, to });
  };
  expect(await ledger.readCommitted(committed, unaborted)).toEqual(committed.slice(0, 10));
  await expect(ledger.readCommitted(committed.slice(10), unaborted)).rejects.toMatchObject({ code: 200205 });
  expect(await ledger.readCommitted(committed.slice(11), unaborted)).toEqual(committed.slice(11));
  delete provider.readBlocks;
});

test("reads a block of the embedded chain that has more logs than a call may have arguments", async () => {
  const one = committed.slice(10, 11);
  provider.readBlocks = async ({ from, to }) => {
    const blocks = await chain.readBlocks({ from, to });
    return blocks.map((block) => ({ ...block, transactions: block.transactions.map(repeatLogs) }));
  };
  expect(await ledger.readCommitted(one, unaborted)).toEqual(one);
  delete provider.readBlocks;
});

test("returns the batches read before an abort, even if the chain hangs", async () => {
  const some = [0, 40, 80].flatMap((index) => committed[index] ?? []);
  const stop = new AbortController();
  let requests = 0;
  provider.current = async (request, pass) => {
    if (request.method !== "eth_getLogs") return pass();
    requests += 1;
    if (requests === 1) return pass();
    stop.abort();
    return new Promise(() => {});
  };
  expect(await ledger.readCommitted(some, stop.signal)).toEqual(some.slice(0, 1));
  expect(requests).toBe(2);
  provider.current = passAll;
});

test("fails with 200205 if the endpoint answers that it has pruned the blocks", async () => {
  provider.current = async (request, pass) => {
    if (request.method === "eth_getLogs") throw Object.assign(new Error("pruned history unavailable"), { code: 4444 });
    return pass();
  };
  await expect(ledger.readCommitted(committed.slice(0, 3), unaborted)).rejects.toMatchObject({ code: 200205 });
  provider.current = passAll;
});

test("returns batches that the limits of today would not allow", async () => {
  const lowered = createEvmHarness(provider, "key").createLedger({
    eventRules: { ...commonEventRules, contentBytesMax: 1 },
  });
  await lowered.start();
  const later = committed.at(-1);
  const block = await lowered.readBlock(later?.blockNumber ?? 0, unaborted);
  expect(block?.entries).toMatchObject([{ kind: "events-malformed", fault: "beyond-limits" }]);
  expect(await lowered.readCommitted(committed, unaborted)).toEqual(committed);
  await lowered.stop();
});
