import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { fromHex } from "@stele/eth/node";
import type { Hex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type EmbeddedChain, type EmbeddedChainOptions, startEmbeddedChain } from "../embedded-chain.ts";
import {
  LOGS_SEARCH_TRANSACTIONS_MAX,
  OVERRIDE_CODE_BYTES_MAX,
  READER_CALL_GAS_MAX_DEFAULT,
  READER_PAUSE_AFTER_MS,
  READER_REQUESTS_MAX,
} from "../limits.ts";
import { addressKey, topicKey } from "../storage/places.ts";
import { CHAIN_ID } from "../testing/client.ts";

const account = privateKeyToAccount(generatePrivateKey());
const SINK: Hex = "0x00000000000000000000000000000000000000aa";
const TOPIC: Hex = `0x${"ab".repeat(32)}`;
/** Code that calls itself twice with all its gas, and never passes a JUMPDEST, where calls check their deadline. */
const recursion = "0x5f5f5f5f5f305af1505f5f5f5f5f305af150";
const hugeCode = `0x6003565b5f5f5f5f5f305af100${"00".repeat(250_000)}`;

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "stele-reader-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function start(options: Partial<EmbeddedChainOptions> = {}): Promise<EmbeddedChain> {
  const file = join(folder, "chain.db");
  const chain = await startEmbeddedChain({ file, chainId: CHAIN_ID, genesisAccounts: [account.address], ...options });
  await chain.request({ method: "eth_subscribe", params: ["newHeads"] });
  return chain;
}

async function read(chain: EmbeddedChain, method: string, ...params: unknown[]): Promise<unknown> {
  return JSON.parse(await chain.reader.read({ method, params }));
}

function run(chain: EmbeddedChain, code: string): Promise<unknown> {
  return read(chain, "eth_call", { to: SINK }, "latest", { [SINK]: { code } });
}

/** Makes a block with a transfer of 1 wei and returns its number. */
function makeBlock(chain: EmbeddedChain, nonce: number): Promise<Hex> {
  return makeBlockOf(chain, { nonce, gas: 21_000n, to: SINK, value: 1n });
}

/** Makes a block whose transaction writes logs of 4 MiB. */
function makeLogs(chain: EmbeddedChain, nonce: number, logs: number): Promise<Hex> {
  const writeLog = "624000005fa0"; // PUSH3 4,194,304, PUSH0, LOG0
  return makeBlockOf(chain, { nonce, gas: 500_000_000n, data: `0x${writeLog.repeat(logs)}` });
}

/** Makes a chain whose index wrongly says that this many transactions have logs under a key. */
async function makeLogPlaces(count: number, key = addressKey(fromHex(SINK))): Promise<void> {
  const file = join(folder, "chain.db");
  {
    await using chain = await start({ file });
    await makeBlock(chain, 0);
  }
  const database = new DatabaseSync(file);
  database.exec(
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
     INSERT INTO places SELECT ${key}, i FROM n`,
  );
  database.close();
}

type Sent = Readonly<{ nonce: number; gas: bigint; to?: Hex; value?: bigint; data?: Hex }>;

async function makeBlockOf(chain: EmbeddedChain, sent: Sent): Promise<Hex> {
  const sealed = new Promise<Hex>((resolve) => {
    const listener: Parameters<typeof chain.on<"message">>[1] = ({ data }) => {
      chain.removeListener("message", listener);
      resolve((data.result as { number: Hex }).number); // only newHeads is subscribed to
    };
    chain.on("message", listener);
  });
  const fees = { type: "eip1559", maxFeePerGas: 7n, maxPriorityFeePerGas: 0n } as const;
  const raw = await account.signTransaction({ ...fees, ...sent, chainId: CHAIN_ID });
  await chain.request({ method: "eth_sendRawTransaction", params: [raw] });
  return sealed;
}

describe("SnapshotReader", () => {
  it("SnapshotReader reads each block as soon as it is announced", async () => {
    await using chain = await start();
    for (let nonce = 0; nonce < 20; nonce += 1) {
      const number = await makeBlock(chain, nonce);
      expect(await read(chain, "eth_blockNumber")).toBe(number);
      expect(Number(await read(chain, "eth_getBalance", SINK, "latest"))).toBe(nonce + 1);
    }
  });

  it("SnapshotReader reads past states, as far back as the start of the process", async () => {
    {
      await using chain = await start();
      for (let nonce = 0; nonce < 6; nonce += 1) {
        const number = await makeBlock(chain, nonce);
        expect(Number(await read(chain, "eth_getBalance", SINK, `0x${nonce.toString(16)}`))).toBe(nonce);
        expect(Number(await read(chain, "eth_getBalance", SINK, number))).toBe(nonce + 1);
      }
      expect(Number(await read(chain, "eth_getBalance", SINK, "0x0"))).toBe(0);
      const proof = [SINK, [], "0x3"];
      expect(await read(chain, "eth_getProof", ...proof)).toEqual(
        await chain.request({ method: "eth_getProof", params: proof }),
      );
    }
    await using chain = await start();
    const refusal = { code: -32000, message: expect.stringMatching(/^missing trie node/) };
    await expect(read(chain, "eth_getBalance", SINK, "0x3")).rejects.toMatchObject(refusal);
    expect(Number(await read(chain, "eth_getBalance", SINK, "0x6"))).toBe(6);
  });

  it("SnapshotReader ends a call that never checks its deadline, and answers the requests after it", async () => {
    await using chain = await start({ callTimeMsMax: 100 });
    const culprits = [run(chain, recursion), run(chain, recursion)].map((call) =>
      call.catch((error: unknown) => error),
    );
    const behind = [read(chain, "eth_blockNumber"), read(chain, "eth_chainId")];
    for (const culprit of culprits) {
      expect(await culprit).toMatchObject({ code: -32000, message: "execution aborted (timeout = 100ms)" });
    }
    expect(await Promise.all(behind)).toEqual(["0x0", `0x${CHAIN_ID.toString(16)}`]);
  });

  it("SnapshotReader pauses after a long request, so that the chain can copy its log, but not for as long as the request took", async () => {
    await using chain = await start({ callTimeMsMax: 60_000 });
    await read(chain, "eth_chainId"); // starts the thread
    const askedAt = performance.now();
    const loop = run(chain, "0x5b5f56").catch(() => performance.now()); // JUMPDEST, PUSH0, JUMP, until the gas is used up
    const next = read(chain, "eth_blockNumber").then(() => performance.now());
    const endedAt = Number(await loop);
    const pauseMs = (await next) - endedAt;
    expect(pauseMs).toBeGreaterThan(READER_PAUSE_AFTER_MS - 5);
    expect(pauseMs).toBeLessThan((endedAt - askedAt) / 2);
  });

  it("onWorked gets the time for which the thread worked on a request, even a failed one, but not the waits for other requests and a pause", async () => {
    await using chain = await start({ callTimeMsMax: 60_000 });
    await read(chain, "eth_chainId"); // starts the thread
    const worked: number[] = [];
    const askedAt = performance.now();
    const ask = (method: string, ...params: unknown[]) =>
      chain.reader.read({ method, params }, (workedMs) => worked.push(workedMs));
    const loop = ask("eth_call", { to: SINK }, "latest", { [SINK]: { code: "0x5b5f56" } }); // JUMPDEST, PUSH0, JUMP
    const next = ask("eth_blockNumber");
    await expect(loop).rejects.toThrow(/gas/);
    await next;
    const [loopMs = 0, nextMs = 0] = worked;
    expect(worked).toHaveLength(2);
    expect(loopMs).toBeGreaterThan(READER_PAUSE_AFTER_MS);
    expect(loopMs + READER_PAUSE_AFTER_MS - 5 + nextMs).toBeLessThan(performance.now() - askedAt);
  });

  it("SnapshotReader ends a call that needs too much memory, and no other", async () => {
    await using chain = await start({ callTimeMsMax: 60_000 });
    const culprit = run(chain, hugeCode).catch((error: unknown) => error);
    const behind = read(chain, "eth_blockNumber");
    expect(await culprit).toMatchObject({ code: -32000, message: "execution aborted (out of memory)" });
    expect(await behind).toBe("0x0");
    expect(await makeBlock(chain, 0)).toBe("0x1");
  }, 90_000);

  it("SnapshotReader lets the chain seal blocks while a call runs, and ends the call when the chain stops", async () => {
    const chain = await start({ callTimeMsMax: 60_000 });
    const call = run(chain, recursion).catch((error: unknown) => error);
    expect(await makeBlock(chain, 0)).toBe("0x1");
    const waiting = read(chain, "eth_blockNumber").catch((error: unknown) => error);
    await chain.stop();
    expect([await call, await waiting]).toEqual([
      expect.objectContaining({ code: 4900 }),
      expect.objectContaining({ code: 4900 }),
    ]);
    await expect(read(chain, "eth_blockNumber")).rejects.toMatchObject({ code: 4900 });
  });

  it("SnapshotReader gives a call no more gas than the cap, even if the call asks for more", async () => {
    await using chain = await start();
    const gasLeft = "0x5a5f5260205ff3"; // GAS, PUSH0, MSTORE, PUSH1 32, PUSH0, RETURN
    const answer = await read(chain, "eth_call", { to: SINK, gas: "0x40000000" }, "latest", {
      [SINK]: { code: gasLeft },
    });
    expect(BigInt(answer as string)).toBeLessThan(READER_CALL_GAS_MAX_DEFAULT);
    expect(BigInt(answer as string)).toBeGreaterThan(READER_CALL_GAS_MAX_DEFAULT - 100_000n);
  });

  it("SnapshotReader refuses an override of an account's code over its limit", async () => {
    await using chain = await start();
    const longest: Hex = `0x${"00".repeat(OVERRIDE_CODE_BYTES_MAX)}`;
    expect(await run(chain, longest)).toBe("0x");
    await expect(run(chain, `${longest}00`)).rejects.toMatchObject({ code: -32602 });
  });

  it("SnapshotReader refuses a call whose overrides empty an account that has storage", async () => {
    await using chain = await start();
    const block = await makeBlockOf(chain, { nonce: 0, gas: 100_000n, data: "0x600160005500" }); // PUSH1 1, PUSH1 0, SSTORE, STOP
    const [receipt] = (await read(chain, "eth_getBlockReceipts", block)) as { contractAddress: Hex }[];
    const to = receipt?.contractAddress ?? SINK;
    expect(await read(chain, "eth_call", { to }, "latest", { [to]: { balance: "0x1" } })).toBe("0x");
    const call = read(chain, "eth_call", { to }, "latest", { [to]: { nonce: "0x0" } });
    await expect(call).rejects.toMatchObject({ code: -32000, message: expect.stringMatching(/has storage/) });
  });

  it.each(["eth_call", "eth_estimateGas"])(
    "SnapshotReader refuses block overrides of %s, which would have no effect",
    async (method) => {
      await using chain = await start();
      const refusal = { code: -32602, message: "invalid argument 3: block overrides are not supported" };
      await expect(read(chain, method, { to: SINK }, "latest", {}, { number: "0x7" })).rejects.toMatchObject(refusal);
      for (const none of [null, {}, { number: null }]) {
        expect(await read(chain, method, { to: SINK }, "latest", {}, none)).toMatch(/^0x/);
      }
    },
  );

  it("SnapshotReader refuses an answer that is too long", async () => {
    await using chain = await start({ readerCallGasMax: 536_870_912n, callTimeMsMax: 30_000 });
    const returnZeros = "0x62d000005ff3"; // PUSH3 13,631,488, PUSH0, RETURN
    await expect(run(chain, returnZeros)).rejects.toMatchObject({ code: -32003, message: "response too large" });
  });

  it("SnapshotReader refuses the logs and the receipts of a block that are several times as long as an answer may be", async () => {
    await using chain = await start({ callTimeMsMax: 60_000 });
    for (const nonce of [0, 1]) await makeLogs(chain, nonce, 7 + nonce);
    const refusal = { code: -32003, message: "response too large" };
    for (const block of ["0x1", "0x2"]) {
      await expect(read(chain, "eth_getLogs", { fromBlock: block, toBlock: block })).rejects.toMatchObject(refusal);
      await expect(read(chain, "eth_getBlockReceipts", block)).rejects.toMatchObject(refusal);
    }
    expect(await read(chain, "eth_blockNumber")).toBe("0x2");
  });

  it("if a search for logs finds too much or takes too long, SnapshotReader says to ask for fewer blocks", async () => {
    const search = { fromBlock: "0x0" };
    {
      await using chain = await start({ callTimeMsMax: 30_000 });
      for (let nonce = 0; nonce < 3; nonce += 1) await makeLogs(chain, nonce, 1);
      const message = expect.stringMatching(/^query returned more than .* ask for fewer blocks$/);
      await expect(read(chain, "eth_getLogs", search)).rejects.toMatchObject({ code: -32005, message });
      expect(await read(chain, "eth_getLogs", { ...search, toBlock: "0x2" })).toHaveLength(2);
      await makeLogs(chain, 3, 8);
    }
    await using chain = await start({ callTimeMsMax: 0 });
    const message = "query timeout exceeded (0ms); ask for fewer blocks";
    await expect(read(chain, "eth_getLogs", { fromBlock: "0x4" })).rejects.toMatchObject({ code: -32005, message });
  });

  it.each([
    {
      of: "in more transactions than it can read",
      count: LOGS_SEARCH_TRANSACTIONS_MAX + 1,
      callTimeMsMax: 30_000,
      says: /^query searches more than /,
    },
    {
      of: "whose transactions it does not find in time",
      count: 1_000,
      callTimeMsMax: 0,
      says: /^query timeout exceeded /,
    },
  ])("SnapshotReader refuses a search for logs $of", async ({ count, callTimeMsMax, says }) => {
    await makeLogPlaces(count);
    await using chain = await start({ callTimeMsMax });
    const refusal = { code: -32005, message: expect.stringMatching(says) };
    await expect(read(chain, "eth_getLogs", { fromBlock: "0x0", address: SINK })).rejects.toMatchObject(refusal);
  });

  it("SnapshotReader answers a search for a rare log of a contract that has logs in more transactions than a search can read", async () => {
    await makeLogPlaces(LOGS_SEARCH_TRANSACTIONS_MAX + 1);
    await using chain = await start();
    expect(await read(chain, "eth_getLogs", { fromBlock: "0x0", address: SINK, topics: [TOPIC] })).toEqual([]);
  });

  it.each([1_000, LOGS_SEARCH_TRANSACTIONS_MAX + 1])(
    "SnapshotReader answers a search for a contract's logs, although other contracts have logs with the same topic in %i transactions",
    async (count) => {
      await makeLogPlaces(count, topicKey(fromHex(TOPIC)));
      await using chain = await start();
      expect(await read(chain, "eth_getLogs", { fromBlock: "0x0", address: SINK, topics: [TOPIC] })).toEqual([]);
    },
  );

  it("SnapshotReader refuses requests over the limit, and parameters that are nested too deeply", async () => {
    await using chain = await start();
    // READER_REQUESTS_MAX requests wait, and one more runs.
    const requests = Array.from({ length: READER_REQUESTS_MAX + 1 }, () => read(chain, "eth_chainId"));
    await expect(read(chain, "eth_chainId")).rejects.toMatchObject({ code: -32005 });
    await Promise.all(requests);
    const nested = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
    const params: unknown = JSON.parse(nested);
    await expect(chain.reader.read({ method: "eth_call", params })).rejects.toMatchObject({ code: -32602 });
  });

  it("SnapshotReader refuses to read a chain in memory", async () => {
    await using chain = await start({ file: ":memory:" });
    await expect(read(chain, "eth_blockNumber")).rejects.toThrow(/has no file/);
    expect(await makeBlock(chain, 0)).toBe("0x1");
  });

  it("after a stop, SnapshotReader leaves only the chain's file, head file and lock in the folder", async () => {
    const chain = await start();
    await makeBlock(chain, 0);
    await read(chain, "eth_blockNumber");
    await chain.stop();
    expect(readdirSync(folder).toSorted()).toEqual(["chain.db", "chain.db-head", "chain.db-lock"]);
  });
});
