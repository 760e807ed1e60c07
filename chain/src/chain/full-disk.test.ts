import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { hexToBytes } from "viem";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { BLOCK_GAS_LIMIT_DEFAULT, COMMIT_RETRY_MS, LOG_BYTES_MAX } from "../limits.ts";
import { ChainDatabase } from "../storage/chain-database.ts";
import { SCHEMA } from "../storage/schema.ts";
import { CHAIN_ID, FEES, SIGNER } from "../testing/client.ts";
import { Chain, type ChainOptions } from "./chain.ts";

const options: ChainOptions = {
  chainId: CHAIN_ID,
  genesisAccounts: [SIGNER.address],
  blockGasLimit: BLOCK_GAS_LIMIT_DEFAULT,
  callGasMax: 0n,
  transactionBytesMax: 10_000,
  callTimeMsMax: 0,
  checkInterval: 1,
  registryCode: undefined,
  unsavedBytesMax: LOG_BYTES_MAX,
};

/** A disk with room for the write-ahead log and none for the file: the log cannot be copied into the file. */
class SmallDisk extends DatabaseSync {
  isFull = false;

  override prepare(...args: Parameters<DatabaseSyncInstance["prepare"]>) {
    if (this.isFull && args[0].includes("wal_checkpoint")) throw new Error("database or disk is full");
    return super.prepare(...args);
  }
}

/** Opens a chain whose log always has the length at which it is copied into the file. `reported` is what the chain reports to its owner. */
async function open(disk: SmallDisk) {
  disk.exec(SCHEMA);
  const owned = { database: disk, isMoved: () => false, logBytes: () => LOG_BYTES_MAX, close: () => disk.close() };
  const reported: string[] = [];
  const chain = await Chain.open(new ChainDatabase(disk, owned), options, {
    blockSealed: ({ header }) => reported.push(`block ${header.number}`),
    sealingEnded: () => {},
    transactionPooled: () => {},
    faultChanged: (fault) => reported.push(fault?.message ?? "no fault"),
    mismatchFound: () => {},
    damageFound: () => {},
  });
  return { chain, reported };
}

/** Waits until `what` is the chain's latest report. */
async function last(reported: readonly string[], what: string): Promise<void> {
  while (reported.at(-1) !== what) await new Promise((resolve) => setImmediate(resolve));
}

async function submit(chain: Chain, nonce: number): Promise<void> {
  const fields = { type: "eip1559", chainId: CHAIN_ID, ...FEES, gas: 100_000n, to: SIGNER.address } as const;
  chain.submit(hexToBytes(await SIGNER.signTransaction({ ...fields, nonce })));
}

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

it("accepts transactions again once the log can be copied into the file, even if no transaction waited meanwhile", async () => {
  const disk = new SmallDisk(":memory:");
  const { chain, reported } = await open(disk);
  disk.isFull = true;
  await submit(chain, 0);
  await last(reported, "database or disk is full");
  await expect(submit(chain, 1)).rejects.toThrow("no block can be written: database or disk is full");
  disk.isFull = false;
  await vi.advanceTimersByTimeAsync(COMMIT_RETRY_MS);
  await last(reported, "no fault");
  await submit(chain, 1);
  await last(reported, "block 2");
  await chain.stop();
});

it("reports a full disk to its owner, and continues, if the log cannot be copied into the file after releaseFile", async () => {
  const disk = new SmallDisk(":memory:");
  const { chain, reported } = await open(disk);
  expect(chain.holdFile()).toBe(true);
  disk.isFull = true;
  chain.releaseFile();
  expect(reported).toEqual(["database or disk is full"]);
  await vi.advanceTimersByTimeAsync(COMMIT_RETRY_MS);
  await last(reported, "no fault");
  await chain.stop();
});
