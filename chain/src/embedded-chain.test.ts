import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { type Hex, hexToBytes } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, it, vi } from "vitest";
import { ChainFileError } from "./chain-file-error.ts";
import { EmbeddedChain, type EmbeddedChainOptions, type SubscriptionMessage } from "./embedded-chain.ts";
import { NativeCalls } from "./native-calls.ts";
import { useChainFolder } from "./testing/chain-folder.ts";
import { CHAIN_ID } from "./testing/client.ts";
import { verifyChainFile } from "./testing/verify-chain-file.ts";

const key = generatePrivateKey();
const account = privateKeyToAccount(key);
const fees = {
  type: "eip1559",
  chainId: CHAIN_ID,
  gas: 1_000_000n,
  maxFeePerGas: 7n,
  maxPriorityFeePerGas: 0n,
} as const;
const SINK: Hex = "0x00000000000000000000000000000000000000aa";

const folder = useChainFolder();

function start(options: Partial<EmbeddedChainOptions> = {}): Promise<EmbeddedChain> {
  return folder.start({ genesisAccounts: [account.address], ...options });
}

function ask<Answer = string>(chain: EmbeddedChain, method: string, ...params: unknown[]): Promise<Answer> {
  return chain.request({ method, params }) as Promise<Answer>; // The test names the type that the method returns.
}

interface Head {
  readonly number: Hex;
  readonly hash: Hex;
}

/** Waits for the first head of a subscription for which `isLast` holds. */
function untilHead(chain: EmbeddedChain, isLast: (head: Head) => boolean = () => true): Promise<Head> {
  return new Promise((resolve) => {
    const listener = ({ data }: SubscriptionMessage): void => {
      const head = data.result as Head; // only newHeads is subscribed to
      if (!isLast(head)) return;
      chain.removeListener("message", listener);
      resolve(head);
    };
    chain.on("message", listener);
  });
}

async function send(chain: EmbeddedChain, nonce: number, data?: Hex): Promise<Hex> {
  const raw = await account.signTransaction({
    ...fees,
    nonce,
    to: SINK,
    value: 1n,
    ...(data === undefined ? {} : { data }),
  });
  return ask<Hex>(chain, "eth_sendRawTransaction", raw);
}

describe("startEmbeddedChain", () => {
  it("the chain keeps blocks, receipts and balances over a restart", async () => {
    let hash: Hex;
    let head: Head;
    {
      await using chain = await start();
      await ask(chain, "eth_subscribe", "newHeads");
      const sealed = untilHead(chain);
      hash = await send(chain, 0);
      head = await sealed;
    }
    await using chain = await start();
    expect(await ask(chain, "eth_blockNumber")).toBe("0x1");
    expect(await ask(chain, "eth_getBlockByNumber", "latest", false)).toMatchObject({ hash: head.hash });
    expect(await ask(chain, "eth_getTransactionReceipt", hash)).toMatchObject({ status: "0x1", blockHash: head.hash });
    expect(await ask(chain, "eth_getBalance", SINK, "latest")).toBe("0x1");
    await expect(ask(chain, "eth_getBalance", SINK, "0x0")).rejects.toMatchObject({
      code: -32000,
      message: expect.stringMatching(/^missing trie node/),
    });
  });

  it("the chain puts 50 waiting transactions into few blocks, and makes no block if none wait", async () => {
    await using chain = await start({ file: ":memory:" });
    await ask(chain, "eth_subscribe", "newHeads");
    const heads: Head[] = [];
    chain.on("message", ({ data }) => heads.push(data.result as Head));
    const last = untilHead(chain);
    const raws = await Promise.all(
      Array.from({ length: 50 }, (_, nonce) => account.signTransaction({ ...fees, nonce, to: SINK, value: 1n })),
    );
    await Promise.all(raws.toReversed().map((raw) => ask(chain, "eth_sendRawTransaction", raw)));
    await last;
    expect(heads.length).toBeLessThan(10);
    expect(await ask(chain, "eth_getTransactionCount", account.address, "latest")).toBe("0x32");
    const before = await ask(chain, "eth_blockNumber");
    expect(await ask(chain, "eth_blockNumber")).toBe(before);
  });

  it("the chain sends a notification for each log of a new block, until eth_unsubscribe", async () => {
    await using chain = await start({ file: ":memory:" });
    await ask(chain, "eth_subscribe", "newHeads");
    const deployed = untilHead(chain);
    const deployment = "0x600d600c600039600d6000f33660006000376000366000a100";
    const raw = await account.signTransaction({ ...fees, nonce: 0, data: deployment });
    const hash = await ask(chain, "eth_sendRawTransaction", raw);
    await deployed;
    const { contractAddress } = await ask<{ contractAddress: Hex }>(chain, "eth_getTransactionReceipt", hash);
    const id = await ask(chain, "eth_subscribe", "logs", { address: contractAddress });
    const received: unknown[] = [];
    chain.on("message", ({ data }) => {
      if (data.subscription === id) received.push(data.result);
    });
    for (const [nonce, isSubscribed] of [
      [1, true],
      [2, false],
    ] as const) {
      if (!isSubscribed) expect(await ask(chain, "eth_unsubscribe", id)).toBe(true);
      const sealed = untilHead(chain);
      const call = await account.signTransaction({ ...fees, nonce, to: contractAddress, data: "0xabcd" });
      await ask(chain, "eth_sendRawTransaction", call);
      await sealed;
    }
    expect(received).toEqual([
      expect.objectContaining({ address: contractAddress, data: "0xabcd", blockNumber: "0x2" }),
    ]);
  });

  it("the chain refuses to start twice on one file", async () => {
    await using chain = await start();
    await expect(start()).rejects.toThrow(/is in use by another process/);
    expect(await ask(chain, "eth_blockNumber")).toBe("0x0");
  });

  it("the chain reports a damaged lock file, and starts once that file is removed", async () => {
    await (await start()).stop();
    writeFileSync(`${folder.file}-lock`, "no database");
    await expect(start()).rejects.toThrow(`The lock ${folder.file}-lock is damaged`);
    rmSync(`${folder.file}-lock`);
    await using chain = await start();
    expect(await ask(chain, "eth_blockNumber")).toBe("0x0");
  });

  it("the chain copies the write-ahead log of a killed process into the file after the first new block, even if that block is small", async () => {
    const killed = join(folder.path, "killed");
    await using first = await start();
    await ask(first, "eth_subscribe", "newHeads");
    for (let nonce = 0; nonce < 3; nonce += 1) {
      const block = untilHead(first);
      await send(first, nonce, `0x${"ab".repeat(50_000)}`);
      await block;
    }
    for (const end of ["", "-wal"]) copyFileSync(`${folder.file}${end}`, `${killed}${end}`);
    const { size } = statSync(killed);
    await using chain = await start({ file: killed });
    await send(chain, 3);
    await vi.waitUntil(() => statSync(killed).size > size, { timeout: 10_000 });
  });

  it("the chain refuses another chain id and an account that it never funded", async () => {
    await (await start()).stop();
    await expect(start({ chainId: CHAIN_ID + 1 })).rejects.toThrow(/has chain id 1337, not 1338/);
    await expect(start({ genesisAccounts: [SINK] })).rejects.toThrow(/was not funded at its genesis/);
  });

  it.each([
    ["no database", "this is not a database, and long enough to be taken for one".repeat(100)],
    ["half of a header", "SQLite format 3\0"],
  ])("the chain refuses a file that is %s", async (_name, content) => {
    writeFileSync(folder.file, content);
    const refusal = await start().catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(ChainFileError);
    expect((refusal as Error).message).toContain(folder.file);
  });

  it("the chain refuses a path in a missing folder", async () => {
    await expect(start({ file: join(folder.path, "missing", "chain.db") })).rejects.toThrow(/cannot be opened/);
  });

  it("the chain rejects requests after a stop, and can be stopped again", async () => {
    const chain = await start({ file: ":memory:" });
    await chain.stop();
    await expect(ask(chain, "eth_blockNumber")).rejects.toMatchObject({ code: 4900 });
    await chain.stop();
  });

  it("when the time is up, the chain ends a search for logs over several blocks, but it always searches one block", async () => {
    await using chain = await start({ file: ":memory:", callTimeMsMax: 0 });
    await ask(chain, "eth_subscribe", "newHeads");
    for (const nonce of [0, 1]) {
      const sealed = untilHead(chain);
      await send(chain, nonce);
      await sealed;
    }
    await expect(ask(chain, "eth_getLogs", { fromBlock: "0x1", toBlock: "0x2" })).rejects.toMatchObject({
      code: -32005,
      message: "query timeout exceeded (0ms); ask for fewer blocks",
    });
    expect(await ask(chain, "eth_getLogs", { fromBlock: "0x2", toBlock: "0x2" })).toEqual([]);
  });

  it("the chain ends a call that runs too long and answers the next", async () => {
    await using chain = await start({ file: ":memory:", callTimeMsMax: 20 });
    const spin = { [SINK]: { code: "0x5b600056" } }; // JUMPDEST, PUSH1 0, JUMP
    await expect(ask(chain, "eth_call", { to: SINK }, "latest", spin)).rejects.toMatchObject({
      code: -32000,
      message: "execution aborted (timeout = 20ms)",
    });
    const answer = { [SINK]: { code: "0x5b602a60005260206000f3" } };
    expect(Number(await ask(chain, "eth_call", { to: SINK }, "latest", answer))).toBe(42);
  });

  it("the chain refuses a transaction over the size limit or the gas limit", async () => {
    await using chain = await start({ file: ":memory:", transactionBytesMax: 200, blockGasLimit: 900_000n });
    await expect(send(chain, 0, `0x${"00".repeat(200)}`)).rejects.toMatchObject({
      code: -32000,
      message: expect.stringMatching(/^oversized data: transaction size \d+, limit 200$/),
    });
    await expect(send(chain, 0)).rejects.toMatchObject({ code: -32000, message: "exceeds block gas limit" });
  });

  it("the chain rejects a request whose parameters cannot be copied to the worker", async () => {
    await using chain = await start({ file: ":memory:" });
    await expect(ask(chain, "eth_blockNumber", () => 1)).rejects.toThrow(/could not be cloned/);
  });

  it("the chain answers requests while the disk is full, and has announced only written blocks", async () => {
    await (await start()).stop();
    await using chain = await start({ filePagesMax: 64 });
    await ask(chain, "eth_subscribe", "newHeads");
    const faults: (Error | undefined)[] = [];
    const faulted = new Promise<void>((resolve) => {
      chain.on("fault", (fault) => {
        faults.push(fault);
        resolve();
      });
    });
    const noise: Hex = `0x${"ab".repeat(40_000)}`;
    let nonce = 0;
    let announced = 0;
    chain.on("message", () => (announced += 1));
    let refusal: unknown;
    while (refusal === undefined)
      refusal = await send(chain, nonce++, noise).then(
        () => undefined,
        (error: unknown) => error,
      );
    await faulted;
    expect(refusal).toMatchObject({ code: -32000, message: expect.stringMatching(/no block can be written: .*full/) });
    expect(faults[0]?.message).toMatch(/full/);
    expect(Number(await ask(chain, "eth_blockNumber"))).toBe(announced);
    expect(Number(await ask(chain, "eth_getTransactionCount", account.address, "latest"))).toBe(
      await countIncluded(chain, announced),
    );
    await chain.stop();
    await verifyChainFile(folder.file);
  });

  it("the chain stops at once if the disk gets full during the stop", async () => {
    await (await start()).stop();
    const chain = await start({ filePagesMax: 1 });
    const faulted = new Promise((resolve) => chain.on("fault", resolve));
    const raw = await account.signTransaction({ ...fees, nonce: 0, to: SINK, data: `0x${"ab".repeat(40_000)}` });
    const submitted = chain.submit(hexToBytes(raw));
    const stopped = chain.stop(60_000);
    await submitted;
    expect(await faulted).toMatchObject({ message: expect.stringMatching(/full/) });
    await stopped;
  });
});

async function countIncluded(chain: EmbeddedChain, blocks: number): Promise<number> {
  let count = 0;
  for (let number = 1; number <= blocks; number += 1) {
    count += Number(await ask(chain, "eth_getBlockTransactionCountByNumber", `0x${number.toString(16)}`));
  }
  return count;
}

/** Settings of the chain's reader, which the tests below do not use. */
const unusedSettings = { file: ":memory:", chainId: CHAIN_ID, callGasMax: 0n, callTimeMsMax: 0 };

/** The flags of workers that make no native call. */
const noNativeCalls = new NativeCalls(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

describe("a chain whose worker does not end", () => {
  it("if the worker does not end, stop returns at its deadline", async () => {
    const worker = new Worker('require("node:worker_threads").parentPort.once("message", () => { for (;;); })', {
      eval: true,
    });
    const chain = new EmbeddedChain(worker, noNativeCalls, unusedSettings);
    const pending = ask(chain, "eth_blockNumber").catch((error: unknown) => error);
    const startedAt = performance.now();
    await chain.stop(100);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    expect(await pending).toMatchObject({ code: 4900 });
  });
});

describe("a chain whose worker ends by itself", () => {
  it("if the worker ends by itself, the chain rejects pending and later requests, and notifies its owner", async () => {
    const worker = new Worker('require("node:worker_threads").parentPort.once("message", () => process.exit(3))', {
      eval: true,
    });
    const chain = new EmbeddedChain(worker, noNativeCalls, unusedSettings);
    const reported = new Promise<Error>((resolve) => chain.on("disconnect", resolve));
    await expect(ask(chain, "eth_blockNumber")).rejects.toMatchObject({
      code: 4900,
      message: expect.stringMatching(/ended with code 3/),
    });
    expect((await reported).message).toMatch(/ended with code 3/);
    await expect(ask(chain, "eth_blockNumber")).rejects.toMatchObject({ code: 4900 });
  });
});

describe("a chain whose process is killed", () => {
  const script = fileURLToPath(new URL("testing/stream-transactions.mjs", import.meta.url));

  /** Runs the script until it has printed the hashes of `answers` confirmed transactions, then kills it at once. */
  async function killAfter(answers: number): Promise<string[]> {
    const child: ChildProcess = spawn(process.execPath, [script, folder.file, key, String(CHAIN_ID)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const hashes: string[] = [];
    if (child.stdout === null) throw new Error("the stream has no output");
    const exited = once(child, "exit");
    for await (const line of createInterface({ input: child.stdout })) {
      hashes.push(line);
      if (hashes.length === answers) child.kill("SIGKILL");
    }
    await exited;
    return hashes;
  }

  it("a chain whose process is killed keeps every confirmed transaction, and a state that can be recomputed", async () => {
    const answered: string[] = [];
    for (const answers of [1, 37, 120]) answered.push(...(await killAfter(answers)));
    const chain = await start();
    for (const hash of answered) {
      expect(await ask(chain, "eth_getTransactionReceipt", hash)).toMatchObject({
        transactionHash: hash,
        status: "0x1",
      });
    }
    const included = await countIncluded(chain, Number(await ask(chain, "eth_blockNumber")));
    expect(await ask(chain, "eth_getTransactionCount", account.address, "latest")).toBe(`0x${included.toString(16)}`);
    await chain.stop();
    await verifyChainFile(folder.file);
  });
});
