import { type EmbeddedChain, startEmbeddedChain } from "@stele/chain";
import { topicRegistryAbi } from "@stele/contracts";
import { fromHex, Signer } from "@stele/eth/node";
import { encodeFunctionData, toFunctionSelector } from "viem";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { parseTopicName } from "../../../domain/topic-name.ts";
import type { LedgerEntry } from "../../../ports/ledger.ts";
import type { EvmLedger } from "../evm-ledger.ts";
import { createEvmHarness, type EvmHarness, testKey } from "../testing/evm-harness.ts";
import { InterceptedProvider, passAll } from "../testing/intercepted-provider.ts";
import { openGas } from "../write/gas.ts";
import { closeCalldata, openCalldata } from "./registry.ts";

const unaborted = new AbortController().signal;
const keysMax = 20;
let chain: EmbeddedChain;
let provider: InterceptedProvider;
let harness: EvmHarness;
let ledger: EvmLedger;
let used = 0;
/** Distinct signed transactions that were sent; on a slow machine one may be resent. */
const sent = new Set<unknown>();

beforeAll(async () => {
  const names = Array.from({ length: keysMax }, (_, index) => [
    `opener ${index}`,
    `stranger to opener ${index}`,
  ]).flat();
  const genesisAccounts = [...names, "opener of whole blocks"].map((name) => new Signer(testKey(name)).address);
  chain = await startEmbeddedChain({ file: ":memory:", chainId: 1337, genesisAccounts });
  provider = new InterceptedProvider(chain);
});

afterAll(() => chain.stop());

beforeEach(async () => {
  harness = createEvmHarness(provider, `opener ${used}`);
  used += 1;
  provider.current = passAll;
  ledger = harness.createLedger();
  await ledger.start();
  sent.clear();
  provider.current = async ({ method, params }, pass) => {
    if (method === "eth_sendRawTransaction") sent.add(params?.[0]);
    return pass();
  };
  return () => ledger.stop();
});

const open = (name: string, signal = unaborted) => ledger.openTopic(parseTopicName(name), signal);

async function entriesUpTo(block: number): Promise<readonly LedgerEntry[]> {
  const entries: LedgerEntry[] = [];
  for await (const step of ledger.follow(undefined, unaborted)) {
    const blocks = step.kind === "blocks" ? step.blocks : [];
    entries.push(...blocks.flatMap((one) => one.entries));
    if ((blocks.at(-1)?.number ?? 0) >= block) break;
  }
  return entries;
}

describe("concurrent opens", () => {
  test("concurrent opens share transactions, which open the topics in the order of the calls", async () => {
    const names = Array.from({ length: 250 }, (_, index) => `topic/${index}`);
    const answers = await Promise.all(names.map((name) => open(name)));
    // A transaction has room for about 110 topics. A slow machine may send one before all calls have arrived.
    expect(sent.size).toBeLessThanOrEqual(6);
    const entries = await entriesUpTo(Math.max(...answers.map(({ blockNumber }) => blockNumber)));
    expect(entries.flatMap((entry) => (entry.kind === "topic-opened" ? entry.name : []))).toEqual(names);
  });

  test("concurrent opens of the same topic share one transaction", async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => open("same")));
    expect(new Set(answers.map(({ blockNumber }) => blockNumber)).size).toBe(1);
    expect(sent.size).toBe(1);
  });

  test("opens are batched while transactions are in progress", async () => {
    const release = provider.holdSends();
    const opened: Promise<unknown>[] = [];
    for (let index = 0; index < 20; index += 1) {
      opened.push(open(`one by one/${index}`));
      await new Promise((resolve) => setImmediate(resolve));
    }
    release();
    await Promise.all(opened);
    expect(sent.size).toBeLessThanOrEqual(6);
  });

  test("opens are refused with 200300 while 10,000 wait, and accepted again once the waiting ones aborted", async () => {
    const gone = new AbortController();
    const waiting = Array.from({ length: 10_000 }, () => open("waits", gone.signal));
    await expect(open("too many")).rejects.toMatchObject({ code: 200300 });
    gone.abort();
    const answers = await Promise.allSettled(waiting);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set(["rejected"]));
    expect(await open("room again")).toMatchObject({ blockNumber: expect.any(Number) });
  });

  test("concurrent opens of topics with long names also share transactions, but none exceeds the gas limit", async () => {
    const names = Array.from({ length: 60 }, (_, index) => `${"long ".repeat(24)}${index}`);
    await Promise.all(names.map((name) => open(name)));
    expect(sent.size).toBeLessThan(4);
  });
});

describe("aborted opens", () => {
  test("a caller that aborts before its transaction is sent gets 200202, and its topic is not opened", async () => {
    const gone = new AbortController();
    const [left, stays] = [open("left", gone.signal), open("stays")];
    gone.abort();
    await expect(left).rejects.toMatchObject({ code: 200202 });
    const { blockNumber } = await stays;
    const entries = await entriesUpTo(blockNumber);
    expect(entries.flatMap((entry) => (entry.kind === "topic-opened" ? entry.name : []))).toEqual(["stays"]);
  });

  test("a caller that aborts after its transaction is sent gets 200201, and the other caller still gets its block", async () => {
    const release = provider.holdSends();
    const gone = new AbortController();
    const [left, stays] = [open("left", gone.signal), open("stays")];
    await new Promise((resolve) => setImmediate(resolve));
    gone.abort();
    await expect(left).rejects.toMatchObject({ code: 200201 });
    release();
    expect(await stays).toMatchObject({ blockNumber: expect.any(Number) });
  });

  test("a caller that aborts after the endpoint refused its transaction gets the refusal (200202) with its hint", async () => {
    const gone = new AbortController();
    provider.current = async ({ method }, pass) => {
      if (method !== "eth_sendRawTransaction") return pass();
      setImmediate(() => gone.abort());
      throw Object.assign(new Error("transaction underpriced"), { code: -32_000 });
    };
    await expect(open("underpriced", gone.signal)).rejects.toMatchObject({
      code: 200202,
      hints: [expect.stringContaining("feeMaxGwei")],
    });
  });
});

test("a closed topic of another owner stays closed (100113), and other opens in the transaction succeed", async () => {
  const { stranger } = harness;
  const contract = { abi: topicRegistryAbi } as const;
  const createWriters = encodeFunctionData({ ...contract, functionName: "createWriters", args: [[]] });
  await stranger.send(fromHex(createWriters), ledger.registryAddress);
  await stranger.send(openCalldata(["theirs"], 1), ledger.registryAddress);
  await expect(ledger.closeTopic(parseTopicName("theirs"), unaborted)).rejects.toMatchObject({ code: 100113 });
  const close = encodeFunctionData({ ...contract, functionName: "close", args: ["theirs"] });
  await stranger.send(fromHex(close), ledger.registryAddress);
  sent.clear();
  const [theirs, ours] = await Promise.allSettled([open("theirs"), open("ours")]);
  expect(theirs).toMatchObject({ reason: { code: 100113 } });
  expect(ours).toMatchObject({ status: "fulfilled" });
  expect(sent.size).toBe(1);
});

test("opening an open topic succeeds, even if another account closes it before the registry is asked", async () => {
  const { stranger } = harness;
  await open("raced");
  let closings = 0;
  const stateOf = toFunctionSelector("stateOf(address)");
  provider.current = async ({ method, params }, pass) => {
    const isStateAsked = method === "eth_call" && JSON.stringify(params).includes(stateOf);
    if (isStateAsked) {
      provider.current = passAll;
      await stranger.send(closeCalldata("raced"), ledger.registryAddress);
      closings += 1;
    }
    return pass();
  };
  expect(await open("raced")).toMatchObject({ blockNumber: expect.any(Number) });
  expect(closings).toBe(1);
});

test("closing a topic fails with 100113 if its owner reserves it for others meanwhile", async () => {
  const { stranger } = harness;
  const contract = { abi: topicRegistryAbi } as const;
  await stranger.open("reserved");
  await stranger.send(
    fromHex(encodeFunctionData({ ...contract, functionName: "createWriters", args: [[]] })),
    ledger.registryAddress,
  );
  const reserve = encodeFunctionData({ ...contract, functionName: "setWriters", args: ["reserved", 1] });
  provider.current = async ({ method }, pass) => {
    if (method === "eth_sendRawTransaction") {
      provider.current = passAll;
      await stranger.send(fromHex(reserve), ledger.registryAddress);
    }
    return pass();
  };
  await expect(ledger.closeTopic(parseTopicName("reserved"), unaborted)).rejects.toMatchObject({ code: 100113 });
});

test.each([2, 31, 32, 128])(
  "the gas formula covers topics with names of %i bytes, with less than twice the gas that they use",
  async (bytes) => {
    let made = 0;
    for (const count of [1, 1, 10, 50]) {
      const names = Array.from({ length: count }, () => {
        made += 1;
        return made.toString(36).padStart(bytes, "n");
      });
      const [answer] = await Promise.all(names.map((name) => open(name)));
      const params = [`0x${answer?.blockNumber.toString(16)}`, false];
      const block = (await chain.request({ method: "eth_getBlockByNumber", params })) as { gasUsed: string }; // A block.
      expect(openGas(names)).toBeGreaterThanOrEqual(Number(block.gasUsed));
      expect(openGas(names)).toBeLessThan(2 * Number(block.gasUsed));
    }
  },
);

test("a start and the opening of an open topic succeed if the chain node puts the bloom of the whole block into each receipt", async () => {
  provider.current = async ({ method }, pass) => {
    const answer = await pass();
    if (method !== "eth_getTransactionReceipt" || answer === null) return answer;
    return { ...(answer as object), logsBloom: `0x${"ff".repeat(256)}` }; // A receipt, by the specification.
  };
  const options = { registry: "deploy", deadlineMs: 5000 } as const;
  const other = createEvmHarness(provider, "opener of whole blocks").createLedger(options);
  await other.start();
  const name = parseTopicName("whole/block");
  const { blockNumber } = await other.openTopic(name, unaborted);
  expect((await other.openTopic(name, unaborted)).blockNumber).toBeGreaterThan(blockNumber);
  await other.stop();
});
