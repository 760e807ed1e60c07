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
  /** The first block whose count is beyond the nonce. */
  readonly usedFrom: number;
  /** By block number, the transaction with the nonce. */
  readonly blocks?: Readonly<Record<number, Hash>>;
  /** What counting fails with. */
  readonly failure?: Error;
}

/** An endpoint that knows of no receipt: it lags behind, or has not finished the block that it counts. */
function endpoint({ usedFrom, blocks = {}, receipt = null, failure }: Endpoint): EvmProvider {
  return {
    request: async ({ method, params = [] }) => {
      if (method === "eth_getTransactionReceipt") return receipt;
      if (method === "eth_getTransactionCount" && failure !== undefined) throw failure;
      if (method === "eth_getTransactionCount") return Number(params[1]) >= usedFrom ? "0x8" : "0x7";
      const hash = blocks[Number(params[0])];
      const stranger = { hash: theirs, from: `0x${"bb".repeat(20)}`, nonce: "0x7" };
      return { transactions: [stranger, ...(hash === undefined ? [] : [{ hash, from: sender, nonce: "0x7" }])] };
    },
  };
}

const isRead = async ({ hash }: { readonly hash: Hash }): Promise<boolean> => hash !== branch;

function fateAt(options: Endpoint): Promise<Fate> {
  const fees = { kind: "legacy", gasPrice: 0n } as const;
  const variants = [{ raw: new Uint8Array(0), hash: ours, fees, signedAt: 0, signedAtBlock: 0 }];
  return findFate({ nonce, variants }, { rpc: new Rpc(endpoint(options)), sender, readUpTo: () => readUpTo, isRead });
}

describe("a transaction without a receipt", () => {
  test("whose nonce is not used is absent", async () => {
    expect(await fateAt({ usedFrom: readUpTo + 1 })).toEqual({ kind: "absent", count: nonce });
  });

  test("is absent also where the node has no state of the newest final block: it can be sent again", async () => {
    const failure = Object.assign(new Error("missing trie node"), { code: -32_000 });
    expect(await fateAt({ usedFrom: 0, failure })).toEqual({ kind: "absent", count: undefined });
  });

  test("is not known to be absent by a node that does not answer", async () => {
    await expect(fateAt({ usedFrom: 0, failure: connectionLost() })).rejects.toMatchObject({ kind: "connection" });
  });

  test.each([0, 1, 2, 50, 96, 99, 100])("whose nonce another one used, in block %d, was replaced", async (block) => {
    expect(await fateAt({ usedFrom: block, blocks: { [block]: theirs } })).toEqual({ kind: "replaced" });
  });

  test.each([0, 63, 99, 100])("that is in block %d does not count as replaced", async (block) => {
    expect(await fateAt({ usedFrom: block, blocks: { [block]: ours } })).toEqual({ kind: "absent", count: nonce + 1 });
  });

  test("whose nonce is counted but found in no block does not count as replaced", async () => {
    expect(await fateAt({ usedFrom: readUpTo })).toEqual({ kind: "absent", count: nonce + 1 });
  });
});

describe("a transaction with a receipt", () => {
  const receipt = { blockNumber: "0x64", blockHash: ours, status: "0x1", gasUsed: "0x1", logs: [] };

  test("of a block that was read is included", async () => {
    expect(await fateAt({ usedFrom: readUpTo, receipt })).toMatchObject({ kind: "included" });
  });

  test("of a block that is not read yet is seen", async () => {
    expect(await fateAt({ usedFrom: 999, receipt: { ...receipt, blockNumber: "0x65" } })).toEqual({
      kind: "seen",
      blockNumber: 101,
    });
  });

  test.each(["0x1", "0x0"])("of a block on another branch is neither included nor reverted", async (status) => {
    const other = { ...receipt, status, blockHash: branch };
    expect(await fateAt({ usedFrom: readUpTo + 1, receipt: other })).toEqual({ kind: "absent", count: nonce });
  });
});
