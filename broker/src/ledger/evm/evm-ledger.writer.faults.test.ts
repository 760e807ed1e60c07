import { Signer, toHex } from "@stele/eth/node";
import { parseTransaction } from "viem/utils";
import { afterEach, expect, test, vi } from "vitest";
import { parseTopicName } from "../../domain/topic-name.ts";
import { silentLogger } from "../../lib/logger.ts";
import { connectionLost, connectionRefused, passAll } from "./testing/intercepted-provider.ts";
import { hashOf, until, WriterWorld } from "./testing/writer-world.ts";

const gwei = 1_000_000_000n;
const unaborted = new AbortController().signal;

const tooLarge = (): Error => Object.assign(new Error("exceeds block gas limit"), { code: -32_000 });

let world: WriterWorld;

afterEach(async () => {
  await world.stop();
});

/** Records the sent transactions, and lets them through. */
function recordSends(): string[] {
  const raws: string[] = [];
  world.provider.current = async (request, pass) => {
    if (request.method === "eth_sendRawTransaction") raws.push(String(request.params?.[0]));
    return pass();
  };
  return raws;
}

test("append fails with 200201 if the send gets no answer and the block comes late; the event is on the chain once", async () => {
  world = await WriterWorld.start();
  const { append, ledger } = await world.createFirstWriter({ deadlineMs: 2000 });
  await world.ask("evm_setAutomine", false);
  world.provider.current = async (request, pass) => {
    const answer = await pass();
    if (request.method === "eth_sendRawTransaction") throw connectionLost();
    return answer;
  };
  await expect(append("a")).rejects.toMatchObject({ code: 200201 });
  world.provider.current = passAll;
  await world.ask("evm_setAutomine", true);
  await world.ask("evm_mine");
  expect(await append("b")).toMatchObject({ status: "committed", firstSequence: 2 });
  expect(await world.published()).toEqual(["a", "b"]);
  await ledger.stop();
});

test("settled returns no block below that of a transaction, even if another node of the endpoint lags", async () => {
  world = await WriterWorld.start();
  const { append, ledger } = await world.createFirstWriter();
  const outcome = await append("a");
  if (outcome?.status !== "committed") throw new Error("not committed");
  const { blockNumber } = outcome;
  world.provider.current = async (request, pass) => {
    const isLatest = request.method === "eth_getBlockByNumber" && request.params?.[0] === "latest";
    return isLatest ? world.ask("eth_getBlockByNumber", `0x${(blockNumber - 1).toString(16)}`, false) : pass();
  };
  expect(await ledger.settled(undefined, unaborted)).toBeGreaterThanOrEqual(blockNumber);
  expect(await ledger.settled(`0x${"ab".repeat(20)}`, unaborted)).toBeGreaterThanOrEqual(blockNumber);
  await ledger.stop();
});

test("logs once that the nonce cannot be read, and once that it can be read again", async () => {
  world = await WriterWorld.start();
  await (await world.createFirstWriter()).ledger.stop();
  const lines: string[] = [];
  const write = (level: string) => (message: string) => void lines.push(`${level} ${message}`);
  const { append, ledger } = await world.createWriter({
    logger: { ...silentLogger, info: write("info"), warn: write("warn") },
  });
  let asked = 0;
  world.provider.current = async (request, pass) => {
    if (request.method === "eth_getTransactionCount" && request.params?.[1] === "pending") {
      asked += 1;
      if (asked < 4) throw connectionRefused();
    }
    return pass();
  };
  expect(await append("a")).toMatchObject({ status: "committed" });
  expect(asked).toBeGreaterThanOrEqual(4);
  expect(lines.filter((line) => line.includes("nonce"))).toEqual([
    "warn nonce not read, trying again",
    "info nonce read again",
  ]);
  await ledger.stop();
});

test("resends a transaction that the pool dropped", async () => {
  world = await WriterWorld.start();
  const { append, ledger } = await world.createFirstWriter();
  await world.ask("evm_setAutomine", false);
  const raws = recordSends();
  const outcomes = Promise.all(["a", "b", "c"].map((text) => append(text)));
  await until(async () => (await world.poolSize()) === 3);
  const release = world.provider.holdSends();
  for (const raw of raws) await world.ask("anvil_dropTransaction", hashOf(raw as `0x${string}`));
  expect(await world.poolSize()).toBe(0);
  release();
  await until(async () => (await world.poolSize()) === 3);
  await world.ask("evm_mine");
  expect(await outcomes).toMatchObject([{ firstSequence: 1 }, { firstSequence: 2 }, { firstSequence: 3 }]);
  expect(await world.published()).toEqual(["a", "b", "c"]);
  await ledger.stop();
});

test.each([
  {
    what: "fees are zero",
    settings: { fees: "zero" } as const,
    args: ["--gas-price", "0", "--block-base-fee-per-gas", "0"],
  },
  { what: "its fee is at the cap", settings: { feeMax: 3n * gwei }, args: [] },
])("resends a dropped transaction whose fee cannot be raised because $what", async (given) => {
  world = await WriterWorld.start(given.args);
  const { append, ledger } = await world.createFirstWriter({ feeBumpAfterMs: 100, ...given.settings });
  await world.ask("evm_setAutomine", false);
  const outcome = append("a");
  await until(async () => (await world.poolSize()) === 1);
  const release = world.provider.holdSends();
  await world.ask("anvil_dropAllTransactions");
  const dropped = Date.now();
  // No chain node has the transaction while blocks come, for longer than feeBumpAfterMs.
  await until(async () => {
    await world.ask("evm_mine");
    return Date.now() - dropped > 500;
  });
  release();
  await until(async () => (await world.poolSize()) === 1);
  await world.ask("evm_mine");
  expect(await outcome).toMatchObject({ firstSequence: 1 });
  expect(await world.published()).toEqual(["a"]);
  await ledger.stop();
});

test("publishes each event once if another sender's transaction took a nonce in the pool", async () => {
  world = await WriterWorld.start();
  const { append, ledger } = await world.createFirstWriter();
  await world.ask("evm_setAutomine", false);
  const outcomes = Promise.all(["a", "b"].map((text) => append(text)));
  await until(async () => (await world.poolSize()) === 2);
  await world.ask("eth_sendRawTransaction", toHex((await world.signForeign()).raw));
  await world.ask("evm_mine");
  await world.ask("evm_setAutomine", true);
  const committed = await outcomes;
  expect(committed.map((outcome) => outcome?.status)).toEqual(["committed", "committed"]);
  expect((await world.published()).toSorted()).toEqual(["a", "b"]);
  expect(await append("c")).toMatchObject({ firstSequence: 3 });
  await ledger.stop();
});

test("raises a fee at once if it is too low for the next block", async () => {
  world = await WriterWorld.start();
  const { append, ledger } = await world.createFirstWriter();
  await world.ask(
    "anvil_setNextBlockBaseFeePerGas",
    toHex(Buffer.from((80n * gwei).toString(16).padStart(12, "0"), "hex")),
  );
  const outcomes = await Promise.all(["a", "b", "c"].map((text) => append(text)));
  expect(outcomes).toMatchObject([{ firstSequence: 1 }, { firstSequence: 2 }, { firstSequence: 3 }]);
  expect(await world.published()).toEqual(["a", "b", "c"]);
  await ledger.stop();
});

test("replaces a stuck transaction with a higher fee under the same nonce", async () => {
  world = await WriterWorld.start();
  const { append, ledger } = await world.createFirstWriter({ feeBumpAfterMs: 300 });
  await world.ask("evm_setAutomine", false);
  const raws = recordSends();
  const outcomes = Promise.all(["a", "b"].map((text) => append(text)));
  await until(async () => (await world.poolSize()) === 2);
  const nonce = await world.transactionCount();
  await world.ask("anvil_setNextBlockBaseFeePerGas", "0x12a05f2000"); // 80 gwei
  await world.ask("evm_mine");
  expect(await world.published()).toEqual([]);
  await until(async () => {
    await world.ask("evm_mine");
    return (await world.published()).length === 2;
  });
  expect(await outcomes).toMatchObject([{ firstSequence: 1 }, { firstSequence: 2 }]);
  expect(await world.transactionCount()).toBe(nonce + 2);
  expect(new Set(raws).size).toBeGreaterThanOrEqual(3);
  expect(await world.published()).toEqual(["a", "b"]);
  await ledger.stop();
});

test("refuses a publish with 200202 and publishes nothing while the fee cap is below the base fee", async () => {
  world = await WriterWorld.start();
  const first = await world.createFirstWriter();
  await first.ledger.stop();
  await world.ask("anvil_setNextBlockBaseFeePerGas", "0x12a05f2000"); // 80 gwei
  const capped = await world.createWriter({ feeMax: 10n * gwei, deadlineMs: 500 });
  const raws = recordSends();
  await expect(capped.append("a")).rejects.toMatchObject({ code: 200202 });
  await capped.ledger.stop();
  expect(raws.length).toBeGreaterThan(0);
  const free = await world.createWriter();
  expect(await free.append("b")).toMatchObject({ firstSequence: 1 });
  expect(await world.published()).toEqual(["b"]);
  await free.ledger.stop();
});

test("offers smaller transactions after an endpoint refused one for its fee", async () => {
  world = await WriterWorld.start();
  const { append, ledger } = await world.createFirstWriter();
  const { bytesPerTransactionMax } = ledger.limits;
  let feeMax = 0n;
  world.provider.current = async (request, pass) => {
    if (request.method !== "eth_sendRawTransaction") return pass();
    const { gas = 0n, maxFeePerGas = 0n } = parseTransaction(request.params?.[0] as `0x${string}`); // The ledger sends this.
    const fee = gas * maxFeePerGas;
    if (feeMax === 0n) feeMax = (fee * 3n) / 4n; // The first transaction has the maximum size.
    if (fee <= feeMax) return pass();
    throw Object.assign(new Error("tx fee (1.33 ether) exceeds the configured cap (1.00 ether)"), { code: -32_000 });
  };
  const largest = (): string => "x".repeat(ledger.limits.bytesPerTransactionMax - 100);
  await expect(append(largest())).rejects.toMatchObject({
    code: 200202,
    hints: [expect.stringContaining("transactionBytesMax")],
  });
  expect(ledger.limits.bytesPerTransactionMax).toBeLessThan(bytesPerTransactionMax);
  expect(await append(largest())).toMatchObject({ status: "committed", firstSequence: 1 });
  await ledger.stop();
});

test("refuses waiting publishes with 200205 while the endpoint is unreachable, and never sends them", async () => {
  world = await WriterWorld.start();
  const { append, ledger } = await world.createFirstWriter();
  world.provider.current = async () => {
    throw connectionRefused();
  };
  const answers = await Promise.allSettled(["a", "b", "c"].map((text) => append(text)));
  for (const answer of answers) expect(answer).toMatchObject({ reason: { code: 200205 } });
  world.provider.current = passAll;
  expect(await append("d")).toMatchObject({ firstSequence: 1 });
  expect(await world.published()).toEqual(["d"]);
  await ledger.stop();
  const next = await world.createWriter();
  expect(await next.append("e")).toMatchObject({ firstSequence: 2 });
  await next.ledger.stop();
});

test("does not send a transaction before the journal has it", async () => {
  world = await WriterWorld.start();
  const { append, ledger } = await world.createFirstWriter();
  const { journal } = world;
  const record = journal.recordTransactions.bind(journal);
  let writes = 0;
  journal.recordTransactions = async (entries) => {
    writes += 1;
    if (writes <= 2) throw new Error("the database is away");
    await record(entries);
  };
  const unrecorded: unknown[] = [];
  world.provider.current = async (request, pass) => {
    if (request.method === "eth_sendRawTransaction") {
      const hash = hashOf(request.params?.[0] as `0x${string}`);
      const entries = await journal.listTransactions("", new Signer(world.privateKey).address);
      if (!entries.some(({ variants }) => variants.some((variant) => variant.hash === hash))) unrecorded.push(hash);
    }
    return pass();
  };
  expect(await append("a")).toMatchObject({ status: "committed", firstSequence: 1 });
  expect(writes).toBeGreaterThan(2);
  expect(unrecorded).toEqual([]);
  expect(await world.published()).toEqual(["a"]);
  await ledger.stop();
}, 20_000);

test("a transaction that was not sent because the journal cannot be written fails with that reason", async () => {
  world = await WriterWorld.start();
  const { append, ledger } = await world.createFirstWriter({ deadlineMs: 300 });
  world.journal.recordTransactions = async () => Promise.reject(new Error("the disk is full"));
  await expect(append("a")).rejects.toMatchObject({
    code: 200205,
    message: expect.stringContaining("the journal of transactions cannot be written: the disk is full"),
  });
  await ledger.stop();
});

test("a timeout error of the endpoint leaves the transaction open, since the endpoint may have accepted it", async () => {
  world = await WriterWorld.start();
  const { append, ledger } = await world.createFirstWriter({ deadlineMs: 3000 });
  let isFirst = true;
  world.provider.current = async (request, pass) => {
    const answer = await pass();
    if (request.method !== "eth_sendRawTransaction" || !isFirst) return answer;
    isFirst = false;
    throw Object.assign(new Error("request timed out"), { code: -32_002 });
  };
  expect(await append("a")).toMatchObject({ status: "committed", firstSequence: 1 });
  expect(await world.published()).toEqual(["a"]);
  await ledger.stop();
});

test("frees the nonce of an earlier run's transaction that the endpoint no longer accepts", async () => {
  world = await WriterWorld.start();
  const first = await world.createFirstWriter({ deadlineMs: 300 });
  const refuseSends = (isRefused: (raw: string) => boolean, error: () => Error): void => {
    world.provider.current = async (request, pass) => {
      if (request.method === "eth_sendRawTransaction" && isRefused(String(request.params?.[0]))) throw error();
      return pass();
    };
  };
  refuseSends(() => true, connectionLost);
  await expect(first.append("a")).rejects.toMatchObject({ code: 200201 });
  await first.abandon();
  refuseSends((raw) => raw.includes("c3c261c0"), tooLarge); // The encoded event "a".
  const second = await world.createWriter({ deadlineMs: 20_000, registry: world.registryAddress });
  expect(await second.append("b")).toMatchObject({ status: "committed", firstSequence: 1 });
  expect(await world.published()).toEqual(["b"]);
  await second.ledger.stop();
}, 30_000);

test("requests at most 32 receipts at a time for a block of 100 transactions", async () => {
  const changes = 100;
  world = await WriterWorld.start();
  const { ledger, abandon } = await world.createFirstWriter();
  const name = parseTopicName("same");
  await ledger.openTopic(name, unaborted);
  await world.ask("anvil_setAutomine", false);
  // Only the first transaction writes a log; the ledger learns of the others from their receipts.
  const closed = Array.from({ length: changes }, () => ledger.closeTopic(name, unaborted));
  await until(async () => (await world.poolSize()) === changes);
  let underWay = 0;
  let most = 0;
  world.provider.current = async ({ method }, pass) => {
    if (method !== "eth_getTransactionReceipt") return pass();
    underWay += 1;
    most = Math.max(most, underWay);
    await new Promise((resolve) => setImmediate(resolve));
    const receipt = await pass();
    underWay -= 1;
    return receipt;
  };
  await world.ask("anvil_mine", "0x1");
  expect(new Set((await Promise.all(closed)).map(({ blockNumber }) => blockNumber)).size).toBe(1);
  expect(most).toBeGreaterThan(1);
  expect(most).toBeLessThanOrEqual(32);
  await abandon();
});

test("publishes an event once if a proxy sends its transaction twice and returns the second answer", async () => {
  world = await WriterWorld.start();
  const { append, ledger } = await world.createFirstWriter();
  world.provider.current = async (request, pass) => {
    if (request.method === "eth_sendRawTransaction") {
      const hash = await pass();
      await until(async () => (await world.ask("eth_getTransactionReceipt", hash)) !== null);
    }
    return pass();
  };
  expect(await append("a")).toMatchObject({ status: "committed", firstSequence: 1 });
  expect(await world.published()).toEqual(["a"]);
  await ledger.stop();
});

test("a no-op replaces a waiting transaction that exceeds the gas of a block after a fall of the gas limit", async () => {
  world = await WriterWorld.start();
  const { append, ledger } = await world.createFirstWriter();
  await world.ask("evm_setAutomine", false);
  const sent = new Set<unknown>();
  world.provider.current = async ({ method, params = [] }, pass) => {
    if (method !== "eth_sendRawTransaction") return pass();
    // Geth recognises a transaction in its pool before it looks at the gas; anvil looks at the gas first.
    if (sent.has(params[0])) throw Object.assign(new Error("already known"), { code: -32_000 });
    sent.add(params[0]);
    return pass();
  };
  const count = await world.transactionCount();
  const leaving = new AbortController();
  const first = expect(append("x".repeat(90_000), leaving.signal)).rejects.toMatchObject({ code: 200201 });
  await until(async () => (await world.poolSize()) === 1);
  leaving.abort();
  await first;
  await world.ask("evm_setBlockGasLimit", "0x16e360"); // 1,500,000
  const check = async (): Promise<void> => {
    await world.ask("evm_mine");
    expect(await world.transactionCount()).toBe(count + 1);
  };
  await vi.waitFor(check, { timeout: 20_000, interval: 100 });
  await world.ask("evm_setAutomine", true);
  expect(await append("b")).toMatchObject({ status: "committed", firstSequence: 1 });
  expect(await world.published()).toEqual(["b"]);
  await ledger.stop();
});

test("append waits for the logs of a receipt whose bloom promises them", async () => {
  world = await WriterWorld.start();
  const { append, ledger } = await world.createFirstWriter();
  let receipts = 0;
  world.provider.current = async ({ method }, pass) => {
    if (method !== "eth_getTransactionReceipt") return method === "eth_getLogs" ? [] : pass();
    receipts += 1;
    return { ...((await pass()) as object), ...(receipts === 1 ? { logs: [] } : {}) }; // A receipt: anvil mines at once.
  };
  expect(await append("a")).toMatchObject({ status: "committed", firstSequence: 1 });
  await ledger.stop();
});
