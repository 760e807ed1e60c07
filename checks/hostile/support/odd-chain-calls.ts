import type { OddValues } from "./odd-values.ts";

export interface ChainCall {
  readonly method: string;
  /** JSON text. */
  readonly params: string;
}

type Kind =
  | "address"
  | "hash"
  | "tag"
  | "block"
  | "flag"
  | "quantity"
  | "keys"
  | "call"
  | "overrides"
  | "filter"
  | "data"
  | "count"
  | "percentiles";

/** The kind of each parameter of each method. `eth_chainId` gets a parameter although it has none; the broker does not serve some of the methods. */
const methods: Readonly<Record<string, readonly Kind[]>> = {
  eth_blockNumber: [],
  eth_chainId: ["tag"],
  eth_call: ["call", "block", "overrides"],
  eth_estimateGas: ["call", "block", "overrides"],
  eth_feeHistory: ["count", "block", "percentiles"],
  eth_getBalance: ["address", "block"],
  eth_getBlockByHash: ["hash", "flag"],
  eth_getBlockByNumber: ["tag", "flag"],
  eth_getBlockReceipts: ["tag"],
  eth_getBlockTransactionCountByHash: ["hash"],
  eth_getBlockTransactionCountByNumber: ["tag"],
  eth_getCode: ["address", "block"],
  eth_getLogs: ["filter"],
  eth_getProof: ["address", "keys", "block"],
  eth_getStorageAt: ["address", "quantity", "block"],
  eth_getTransactionByBlockHashAndIndex: ["hash", "quantity"],
  eth_getTransactionByBlockNumberAndIndex: ["tag", "quantity"],
  eth_getTransactionByHash: ["hash"],
  eth_getTransactionCount: ["address", "block"],
  eth_getTransactionReceipt: ["hash"],
  eth_getUncleCountByBlockHash: ["hash"],
  eth_getUncleCountByBlockNumber: ["tag"],
  web3_sha3: ["data"],
  net_version: [],
  eth_sendRawTransaction: ["data"],
  eth_newFilter: ["filter"],
  __proto__x: [],
};

const word = (digit: string): string => `"0x${digit.repeat(64)}"`;
const quantities = [
  '"0x0"',
  '"0x1"',
  '"0x2"',
  '"0xff"',
  '"0x1fffff"',
  '"0xffffffff"',
  '"0x1fffffffffffff"',
  '"0x20000000000000"',
  '"0x7fffffffffffffff"',
  '"0xffffffffffffffff"',
  '"0x10000000000000000"',
  `"0x${"f".repeat(32)}"`,
  word("f"),
  '"0x01"',
  '"0x"',
  '"latest"',
  "5",
];
const tags = ['"latest"', '"earliest"', '"pending"', '"safe"', '"finalized"', '"LATEST"', "null", ...quantities];
const addresses = [
  '"0x0000000000000000000000000000000000000000"',
  '"0x0000000000000000000000000000000000000001"',
  '"0x0000000000000000000000000000000000000004"',
  `"0x${"f".repeat(40)}"`,
  `"0x${"aB".repeat(20)}"`,
  '"0x"',
];
/** Short programs, among them: stop, revert, invalid, return, store, self-destruct, create, call, log, an invalid jump. */
const codes = [
  "0x",
  "0x00",
  "0xfd",
  "0xfe",
  "0x60006000f3",
  "0x60ff600055",
  "0x33ff",
  "0x60006000600060006000f0",
  "0x5f5f5f5f5f33345af1",
  "0x60006000a0",
  "0x56",
  "0xef00",
  "0x5f3d",
  `0x${"5b".repeat(100)}`,
];

/** A random call. Most parameters are of the right kind; some are odd, missing or too many. */
export function oddChainCall(values: OddValues): ChainCall {
  const { random } = values;
  const method = random.pick(Object.keys(methods));
  if (random.below(20) === 0) return { method, params: values.json() };
  const usual = (methods[method] ?? []).map((kind) => render(values, kind));
  const extra = random.below(10) === 0 ? [values.json()] : [];
  const kept = random.below(6) === 0 ? usual.slice(0, random.below(usual.length + 1)) : usual;
  return { method, params: `[${[...kept, ...extra].join(",")}]` };
}

/** The JSON text of a parameter of this kind; one in twelve is any JSON. */
function render(values: OddValues, kind: Kind): string {
  const { random } = values;
  if (random.below(12) === 0) return values.json();
  return renderers[kind](values);
}

const renderers: Readonly<Record<Kind, (values: OddValues) => string>> = {
  address: ({ random }) => random.pick(addresses),
  hash: ({ random }) => random.pick([word("0"), word("f"), word("a"), '"0x12"']),
  tag: ({ random }) => random.pick(tags),
  block: (values) =>
    values.random.pick([
      () => values.random.pick(tags),
      () => '"latest"',
      () => `{"blockNumber":${render(values, "block")}}`,
      () => `{"blockHash":${render(values, "hash")},"requireCanonical":${render(values, "flag")}}`,
    ])(),
  flag: ({ random }) => random.pick(["true", "false", "null", "1"]),
  quantity: ({ random }) => random.pick(quantities),
  count: ({ random }) => random.pick(["1", "5", "0", "-1", "1024", "9007199254740992", "1.5", '"10"', ...quantities]),
  keys: (values) => `[${Array.from({ length: values.random.below(3) }, () => render(values, "quantity")).join(",")}]`,
  data: ({ random }) => random.pick([...codes, "0x1", "00", "0xzz"].map((code) => JSON.stringify(code))),
  percentiles: (values) =>
    values.random.pick([
      "[]",
      "[25,50,75]",
      "[0,100]",
      "[50,25]",
      "[-1]",
      "[1e400]",
      '["5"]',
      "[null]",
      '[{"toString":1,"valueOf":1}]',
      "[[[5]]]",
    ]),
  call: (values) =>
    object(values, {
      from: "address",
      to: "address",
      gas: "quantity",
      gasPrice: "quantity",
      value: "quantity",
      data: "data",
      input: "data",
      maxFeePerGas: "quantity",
      nonce: "quantity",
    }),
  overrides: (values) =>
    `{${values.random.pick(addresses)}:${object(values, { nonce: "quantity", balance: "quantity", code: "data" }, stateDiff(values))}}`,
  filter: (values) =>
    object(values, { fromBlock: "tag", toBlock: "tag", blockHash: "hash", address: "address" }, topics(values)),
};

/** A JSON object with a random choice of the members, in order, and with `more`. */
function object(values: OddValues, members: Readonly<Record<string, Kind>>, more = ""): string {
  const kept = Object.entries(members).filter(() => values.random.below(3) === 0);
  const texts = kept.map(([name, kind]) => `"${name}":${render(values, kind)}`);
  return `{${[...texts, ...(more === "" ? [] : [more])].join(",")}}`;
}

function stateDiff({ random }: OddValues): string {
  return random.pick([
    "",
    `"stateDiff":{${word("0")}:${word("f")}}`,
    `"stateDiff":{${word("f")}:${word("0")}}`,
    '"stateDiff":{"0x":1}',
    '"state":{}',
  ]);
}

function topics(values: OddValues): string {
  return values.random.pick([
    "",
    `"topics":[${word("a")}]`,
    `"topics":[null,[${word("0")},${word("f")}]]`,
    '"topics":[[],[],[],[],[]]',
    `"topics":${values.json()}`,
  ]);
}
