import { toHex } from "@stele/eth/node";
import { describe, expect, it } from "vitest";
import { POOL_BYTES_MAX, POOL_GAP_TRANSACTIONS_MAX, POOL_TRANSACTIONS_MAX } from "../limits.ts";
import type { AdmittedTransaction } from "./admit.ts";
import { Pool } from "./pool.ts";

let made = 0;

function transaction(sender: number, nonce: number, fee = 100n): AdmittedTransaction {
  made += 1;
  const hash = new Uint8Array(32);
  new DataView(hash.buffer).setUint32(0, made);
  return {
    type: 2,
    hash,
    raw: new Uint8Array(10),
    sender: new Uint8Array(20).fill(sender),
    chainId: 1n,
    nonce: BigInt(nonce),
    maxFeePerGas: fee,
    maxPriorityFeePerGas: fee,
    gasLimit: 21_000n,
    to: undefined,
    value: 0n,
    data: new Uint8Array(0),
    accessList: [],
    v: 0n,
    r: new Uint8Array(1),
    s: new Uint8Array(1),
    intrinsicGas: 21_000n,
  };
}

const order = (pool: Pool): string[] => [...pool.executable()].map(({ sender, nonce }) => `${sender[0]}:${nonce}`);

describe("Pool", () => {
  it("Pool returns runnable transactions by arrival, each after those of its sender with a lower nonce", () => {
    const pool = new Pool(() => 0n);
    for (const [sender, nonce] of [
      [1, 1],
      [2, 0],
      [1, 0],
      [1, 3],
      [2, 1],
    ] as const)
      pool.add(transaction(sender, nonce));
    expect(order(pool)).toEqual(["1:0", "1:1", "2:0", "2:1"]);
    expect(pool.nextNonce(toHex(new Uint8Array(20).fill(1)))).toBe(2n);
    pool.add(transaction(1, 2));
    expect(order(pool)).toEqual(["1:0", "1:1", "2:0", "1:2", "1:3", "2:1"]);
  });

  it("Pool returns neither removed transactions nor those that they leave behind a nonce gap", () => {
    const pool = new Pool(() => 0n);
    const first = transaction(1, 0);
    pool.add(first);
    pool.add(transaction(1, 1));
    pool.remove(first);
    expect(order(pool)).toEqual([]);
    expect(pool.size).toBe(1);
  });

  it("Pool replaces a transaction only with one that pays a tenth more", () => {
    const pool = new Pool(() => 0n);
    pool.add(transaction(1, 0, 100n));
    expect(() => pool.add(transaction(1, 0, 109n))).toThrow("replacement transaction underpriced");
    pool.add(transaction(1, 0, 110n));
    expect(pool.size).toBe(1);
    expect([...pool.executable()][0]?.maxFeePerGas).toBe(110n);
  });

  it("Pool refuses a used nonce, and a nonce too far past the next one", () => {
    const pool = new Pool(() => 5n);
    expect(() => pool.add(transaction(1, 4))).toThrow("nonce too low: next nonce 5, tx nonce 4");
    pool.add(transaction(1, 5 + POOL_GAP_TRANSACTIONS_MAX));
    expect(() => pool.add(transaction(1, 6 + POOL_GAP_TRANSACTIONS_MAX))).toThrow(/^nonce too high/);
  });

  it("Pool refuses a transaction when the pool is full", () => {
    const pool = new Pool(() => 0n);
    for (let nonce = 0; nonce < POOL_TRANSACTIONS_MAX; nonce += 1) pool.add(transaction(1, nonce));
    expect(() => pool.add(transaction(2, 0))).toThrow("txpool is full");
  });

  it("Pool refuses a transaction or a replacement beyond POOL_BYTES_MAX, and has room again once a transaction is removed", () => {
    const pool = new Pool(() => 0n);
    const large = { ...transaction(1, 0), raw: new Uint8Array(POOL_BYTES_MAX - 10) };
    pool.add(large);
    pool.add(transaction(2, 0));
    expect(() => pool.add(transaction(3, 0))).toThrow("txpool is full");
    expect(() => pool.add({ ...transaction(2, 0, 200n), raw: new Uint8Array(11) })).toThrow("txpool is full");
    pool.add(transaction(2, 0, 200n));
    pool.remove(large);
    pool.add(large);
    expect(pool.size).toBe(2);
  });
});
