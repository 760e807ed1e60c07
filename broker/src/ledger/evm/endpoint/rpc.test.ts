import { expect, test } from "vitest";
import { EndpointError, RpcAnswerError } from "./endpoint-error.ts";
import { readHeader, Rpc } from "./rpc.ts";
import { RpcFailure } from "./rpc-failure.ts";

const noNumbers = ["0x", "", null, {}, "0xzz", "latest"];
const address = `0x${"11".repeat(20)}` as const;

test.each(noNumbers)(
  "if the endpoint answers %j instead of a number, throws RpcFailure, and tip returns undefined",
  async (answer) => {
    const rpc = new Rpc({ request: async () => answer });
    await expect(rpc.chainId()).rejects.toThrow(RpcFailure);
    await expect(rpc.transactionCount(address, "pending")).rejects.toThrow(RpcFailure);
    await expect(rpc.estimateGas({ from: address, data: "0x" })).rejects.toThrow(RpcFailure);
    await expect(rpc.gasPrice()).rejects.toThrow(RpcFailure);
    await expect(rpc.balance(address)).rejects.toThrow(RpcFailure);
    expect(await rpc.tip()).toBeUndefined();
  },
);

const priceFrom = async (error: Error): Promise<bigint> => {
  const request = async (): Promise<never> => {
    throw error;
  };
  return new Rpc({ request }).gasPrice();
};

test("the error of a refused request names the method, the error of a lost connection does not", async () => {
  const refused = Object.assign(new Error("method not found"), { code: -32_601 });
  await expect(priceFrom(refused)).rejects.toMatchObject({
    kind: "unsupported",
    message: "eth_gasPrice: method not found",
  });
  const sending = new Rpc({ request: () => Promise.reject(refused) }).sendRaw(new Uint8Array(1));
  await expect(sending).rejects.toMatchObject({ message: "eth_sendRawTransaction: method not found" });
  const lost = new EndpointError("http://a: no answer", { reach: "unknown" });
  await expect(priceFrom(lost)).rejects.toMatchObject({ kind: "connection", message: "http://a: no answer" });
});

test("recognises a refused block range only in requests for logs", async () => {
  const refused = Object.assign(new Error("limit exceeded"), { code: -32_005 });
  await expect(priceFrom(refused)).rejects.toMatchObject({ kind: "refused" });
  const request = async (): Promise<never> => {
    throw refused;
  };
  await expect(new Rpc({ request }).logsOf(hash, filter)).rejects.toMatchObject({ kind: "range-refused" });
});

test.each([
  ["eth_getBlockByNumber", "refused"],
  ["eth_getLogs", "range-refused"],
  [undefined, "range-refused"],
])("classifies the refusal of a batch by the refused request, %s, as %s", async (method, kind) => {
  const requestAll = () => Promise.reject(new RpcAnswerError("limit exceeded", { code: -32_005, method }));
  const rpc = new Rpc({ request: async () => null, requestAll });
  const message = `${method ?? "eth_getLogs"}: limit exceeded`;
  await expect(rpc.logs({ from: 1, to: 1 }, filter)).rejects.toMatchObject({ kind, message });
});

const hash = `0x${"00".repeat(32)}` as const;
const header = { number: "0x1", hash, parentHash: hash, timestamp: "0x2", gasLimit: "0xffffffffffffffff" };

test("reads a header, also one with a gas limit of 64 bits", () => {
  expect(readHeader(header)).toMatchObject({ number: 1, timestamp: 2000, gasLimit: 2 ** 64 });
});

test("asks all endpoints for a block that the chain has, but not for one that it may not have yet", async () => {
  const rpc = new Rpc({ request: async ({ isPromised }) => (isPromised === true ? header : null) });
  expect(await rpc.header(1)).toMatchObject({ number: 1, hash });
  expect(await rpc.findHeader(1)).toBeUndefined();
});

test.each(["number", "timestamp", "gasLimit"].flatMap((field) => noNumbers.map((value) => [field, value] as const)))(
  "refuses a header whose %s is %j",
  (field, value) => {
    expect(() => readHeader({ ...header, [field]: value })).toThrow(RpcFailure);
  },
);

const receipt = { blockHash: hash, blockNumber: "0x2", status: "0x1", gasUsed: "0x5208", logs: [] };
const receiptOf = async (answer: unknown, options?: Parameters<Rpc["receipt"]>[1]) =>
  new Rpc({ request: async () => answer }).receipt(hash, options);

test("reads a receipt, and returns undefined for a pending transaction", async () => {
  expect(await receiptOf(receipt)).toMatchObject({ blockNumber: 2, succeeded: true });
  expect(await receiptOf({ ...receipt, status: "0x01" })).toMatchObject({ succeeded: true });
  expect(await receiptOf({ ...receipt, status: "0x0" })).toMatchObject({ succeeded: false });
  expect(await receiptOf(null)).toBeUndefined();
  expect(await receiptOf({ ...receipt, blockNumber: null, blockHash: null })).toBeUndefined();
});

test("treats a receipt without the logs that its bloom promises as missing, unless the transaction may lack logs", async () => {
  const bloom = `0x${"00".repeat(256)}`;
  expect(await receiptOf({ ...receipt, logsBloom: bloom })).toMatchObject({ logs: [] });
  const foreign = { ...receipt, logsBloom: bloom.replace(/0$/, "1") };
  expect(await receiptOf(foreign)).toBeUndefined();
  expect(await receiptOf(foreign, { mayLackLogs: true })).toMatchObject({ succeeded: true, logs: [] });
  expect(await receiptOf({ ...foreign, status: "0x0" })).toMatchObject({ succeeded: false });
});

test.each(["status", "blockNumber", "blockHash", "logs"])(
  "throws RpcFailure for a receipt without its %s",
  async (field) => {
    await expect(receiptOf({ ...receipt, [field]: undefined })).rejects.toThrow(RpcFailure);
  },
);

const filter = { address, signatures: [] };

test("names the method whose answer is odd, also in a batch", async () => {
  const rpc = new Rpc({ request: async () => "0x", requestAll: async () => [header, null] });
  await expect(rpc.gasPrice()).rejects.toThrow("eth_gasPrice: the endpoint returned no amount");
  await expect(rpc.chainId()).rejects.toThrow("eth_chainId: the endpoint returned no number");
  await expect(rpc.receipt(hash)).rejects.toThrow("eth_getTransactionReceipt: the endpoint returned no receipt");
  await expect(rpc.header(1)).rejects.toThrow("eth_getBlockByNumber: the endpoint returned no block");
  await expect(rpc.logs({ from: 1, to: 1 }, filter)).rejects.toThrow(
    "eth_getLogs: the endpoint returned no list of logs",
  );
});

test.each([null, {}, "0x", [null], [{ address, topics: [], data: "0x" }]])(
  "throws RpcFailure if the answer to a request for logs is %j",
  async (answer) => {
    const rpc = new Rpc({ request: async () => answer });
    await expect(rpc.logsOf(hash, filter)).rejects.toThrow(RpcFailure);
    await expect(rpc.logs({ from: 1, to: 1 }, filter)).rejects.toThrow(RpcFailure);
  },
);

test("returns logs in the order of the chain, each once, whatever order and repeats the endpoint returns", async () => {
  const log = { address, data: "0x", blockHash: hash, transactionHash: hash };
  const places = [
    ["0x9", "0x1", "0x1"],
    ["0x9", "0x1", "0x2"],
    ["0xa", "0x0", "0x1"],
    ["0xa", "0x1", "0x0"], // Some chains count the logs of each transaction.
    ["0x10", undefined, "0x0"],
    ["0x10", undefined, "0x1"],
  ];
  const logs = places.map(([blockNumber, transactionIndex, logIndex], index) => ({
    ...log,
    blockNumber,
    transactionIndex,
    logIndex,
    topics: [`0x${index}`],
  }));
  const twice = [...logs.toReversed(), ...logs];
  for (const answer of [logs, logs.toReversed(), twice]) {
    const rpc = new Rpc({ request: async () => answer });
    expect(await rpc.logsOf(hash, filter)).toEqual(logs);
    expect((await rpc.logs({ from: 9, to: 16 }, filter)).logs).toEqual(logs);
  }
});

/** Logs of transactions without indexes. */
function logsWithoutIndexes(places: readonly (readonly [transaction: string, block: string, logIndex: string])[]) {
  return places.map(([transactionHash, block, logIndex]) => {
    const fields = { address, topics: ["0x1"], data: "0x", transactionHash, logIndex };
    return { ...fields, blockNumber: block, blockHash: `${block}ff` };
  });
}

test("keeps the order of a block's transactions without indexes if each counts its logs, and puts the logs of each in order", async () => {
  const logs = logsWithoutIndexes([
    ["0xb", "0x1", "0x1"],
    ["0xb", "0x1", "0x2"],
    ["0xa", "0x1", "0x0"],
    ["0xa", "0x1", "0x1"],
    ["0xc", "0x2", "0x0"],
  ]);
  const [b1, b2, a0, a1, c0] = logs;
  for (const answer of [logs, [c0, b2, b1, a1, a0], [b1, a0, b2, b1, a1, c0]]) {
    const rpc = new Rpc({ request: async () => answer });
    expect(await rpc.logsOf(hash, filter)).toEqual(logs);
  }
});

test("puts logs of transactions without indexes in the order of their own indexes if these are distinct", async () => {
  const logs = logsWithoutIndexes([
    ["0xb", "0x1", "0x0"],
    ["0xb", "0x1", "0x1"],
    ["0xa", "0x1", "0x2"],
    ["0xc", "0x1", "0xa"],
    ["0xd", "0x2", "0x1"],
  ]);
  const [b0, b1, a2, c10, d1] = logs;
  for (const answer of [logs.toReversed(), [c10, a2, b0, b1, d1], [d1, c10, c10, a2, b1, b0, b0]]) {
    const rpc = new Rpc({ request: async () => answer });
    expect(await rpc.logsOf(hash, filter)).toEqual(logs);
  }
});

test.each(["topics", "blockHash", "transactionHash"])("keeps two logs of one place whose %s differ", async (field) => {
  const place = { blockNumber: "0x1", transactionIndex: "0x0", logIndex: "0x0" };
  const log = { address, topics: ["0x0"], data: "0x", blockHash: hash, transactionHash: hash, ...place };
  const logs = [1, 2].map((other) => ({ ...log, [field]: field === "topics" ? [`0x${other}`] : `0x${other}` }));
  expect(await new Rpc({ request: async () => logs }).logsOf(hash, filter)).toEqual(logs);
});
