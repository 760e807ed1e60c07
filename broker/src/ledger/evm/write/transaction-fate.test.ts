import { describe, expect, test } from "vitest";
import type { Hash } from "../../../domain/topic.ts";
import { type EvmProvider, Rpc } from "../endpoint/rpc.ts";
import { connectionLost } from "../testing/intercepted-provider.ts";
import { type Fate, findFate } from "./transaction-fate.ts";

const sender = "0x00000000000000000000000000000000000000aa";
const ours: Hash = `0x${"01".repeat(32)}`;
const theirs: Hash = `0x${"02".repeat(32)}`;
const nonce = 7;
const readUpTo = 100;

const branch: Hash = `0x${"0b".repeat(32)}`;

interface Endpoint {
  readonly receipt?: unknown;
  /** The first block at which the account's transaction count exceeds the nonce. */
  readonly usedFrom: number;
  /** The hash of each block of `blocks`, and of the block `knownIn`. */
  readonly blockHash?: Hash;
  /** The transaction with the nonce, by block number. */
  readonly blocks?: Readonly<Record<number, Hash>>;
  /** The error of eth_getTransactionCount. */
  readonly failure?: Error;
  /** The first block whose state the chain node has. */
  readonly stateFrom?: number;
  /** The block of our transaction, if the chain node finds it by its hash. */
  readonly knownIn?: number;
}

/** An endpoint, by default without the receipt: it lags, or has not finished the block that it counts. */
function endpoint({
  usedFrom,
  blocks = {},
  blockHash = theirs,
  receipt = null,
  failure,
  stateFrom = 0,
  knownIn,
}: Endpoint): EvmProvider {
  return {
    request: async ({ method, params = [] }) => {
      if (method === "eth_getTransactionReceipt") return receipt;
      if (method === "eth_getTransactionByHash")
        return knownIn === undefined ? null : { hash: ours, blockNumber: `0x${knownIn.toString(16)}`, blockHash };
      if (method === "eth_getTransactionCount" && failure !== undefined) throw failure;
      if (Number(params[1]) < stateFrom) throw stateMissing();
      if (method === "eth_getTransactionCount") return Number(params[1]) >= usedFrom ? "0x8" : "0x7";
      const hash = blocks[Number(params[0])];
      const stranger = { hash: theirs, from: `0x${"bb".repeat(20)}`, nonce: "0x7" };
      return {
        hash: blockHash,
        transactions: [stranger, ...(hash === undefined ? [] : [{ hash, from: sender, nonce: "0x7" }])],
      };
    },
  };
}

function stateMissing(): Error {
  return Object.assign(new Error("missing trie node"), { code: -32_000 });
}

const isRead = async ({ hash }: { readonly hash: Hash }): Promise<boolean> => hash !== branch;

function fateAt(options: Endpoint): Promise<Fate> {
  const fees = { kind: "legacy", gasPrice: 0n } as const;
  const variants = [{ raw: new Uint8Array(0), hash: ours, fees, signedAt: 0, signedAtBlock: 0 }];
  return findFate({ nonce, variants }, { rpc: new Rpc(endpoint(options)), sender, readUpTo: () => readUpTo, isRead });
}

describe("a transaction without a receipt", () => {
  test("a transaction is absent if its nonce is not used", async () => {
    expect(await fateAt({ usedFrom: readUpTo + 1 })).toEqual({ kind: "absent", count: nonce });
  });

  test("a transaction is absent if the chain node has no state of the newest final block", async () => {
    expect(await fateAt({ usedFrom: 0, failure: stateMissing() })).toEqual({ kind: "absent", count: undefined });
  });

  test("a transaction is absent if its nonce was used in a block whose state the chain node lacks", async () => {
    expect(await fateAt({ usedFrom: 10, stateFrom: 90 })).toEqual({ kind: "absent", count: nonce + 1 });
  });

  test("throws RpcFailure if the chain node does not answer", async () => {
    await expect(fateAt({ usedFrom: 0, failure: connectionLost() })).rejects.toMatchObject({ kind: "connection" });
  });

  test.each([0, 1, 2, 50, 96, 99, 100])(
    "a transaction is replaced if another one used its nonce in block %d",
    async (block) => {
      expect(await fateAt({ usedFrom: block, blocks: { [block]: theirs } })).toEqual({ kind: "replaced" });
    },
  );

  test.each([theirs, ours])(
    "a transaction is absent if the block in which transaction %s used its nonce is on another branch",
    async (user) => {
      const other = { usedFrom: readUpTo, blocks: { [readUpTo]: user }, blockHash: branch };
      expect(await fateAt(other)).toEqual({ kind: "absent", count: nonce + 1 });
    },
  );

  test.each([0, 63, 99, 100])(
    "a transaction without a receipt is seen, and neither absent nor replaced, if block %d contains it",
    async (blockNumber) => {
      const blocks = { [blockNumber]: ours };
      expect(await fateAt({ usedFrom: blockNumber, blocks })).toMatchObject({ kind: "seen", blockNumber });
    },
  );

  test.each([
    [36, 90, true],
    [37, 90, false],
    [100, 90, false],
    [36, 101, true],
  ])(
    "a transaction without a receipt is seen if the chain node finds it in block %d and has states from block %d on; isDeep: %s",
    async (knownIn, stateFrom, isDeep) => {
      const fate = await fateAt({ usedFrom: 10, stateFrom, knownIn });
      expect(fate).toEqual({ kind: "seen", blockNumber: knownIn, isDeep });
    },
  );

  test("a transaction is absent, not replaced, if its nonce is counted but no block contains a transaction with this nonce", async () => {
    expect(await fateAt({ usedFrom: readUpTo })).toEqual({ kind: "absent", count: nonce + 1 });
  });
});

describe("a transaction with a receipt", () => {
  const receipt = { blockNumber: "0x64", blockHash: ours, status: "0x1", gasUsed: "0x1", logs: [] };

  test("a transaction is included if its block was read", async () => {
    expect(await fateAt({ usedFrom: readUpTo, receipt })).toMatchObject({ kind: "included" });
  });

  test("a transaction is absent if the chain node finds it, with and without its receipt, in a block on another branch", async () => {
    const other = { usedFrom: 10, receipt: { ...receipt, blockNumber: "0x24", blockHash: branch } };
    expect(await fateAt({ ...other, knownIn: 36, blockHash: branch })).toEqual({ kind: "absent", count: nonce + 1 });
  });

  test("a transaction is seen if its block is not read yet", async () => {
    expect(await fateAt({ usedFrom: 999, receipt: { ...receipt, blockNumber: "0x65" } })).toEqual({
      kind: "seen",
      blockNumber: 101,
    });
  });

  test.each(["0x1", "0x0"])("a transaction is absent if its block is on another branch, status %s", async (status) => {
    const other = { ...receipt, status, blockHash: branch };
    expect(await fateAt({ usedFrom: readUpTo + 1, receipt: other })).toEqual({ kind: "absent", count: nonce });
  });
});
