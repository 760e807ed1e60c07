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
  unsavedBytesMax: 1,
};

/** A disk with room for the write-ahead log and none for the file: the log cannot be copied into the file. */
class SmallDisk extends DatabaseSync {
  isFull = false;

  override prepare(...args: Parameters<DatabaseSyncInstance["prepare"]>) {
    if (this.isFull && args[0].includes("wal_checkpoint")) throw new Error("database or disk is full");
    return super.prepare(...args);
  }
}

/** Opens a chain whose log has the length at which it is copied into the file, and `grown` bytes more. `reported` is what the chain reports to its owner. */
async function open(disk: SmallDisk, grown = () => 0) {
  disk.exec(SCHEMA);
  const logBytes = (): number => LOG_BYTES_MAX + grown();
  const owned = { database: disk, isMoved: () => false, logBytes, close: () => disk.close() };
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

it("after a full disk, the chain accepts transactions again once it can copy the log into the file, even if no transaction waits", async () => {
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

it("if the log cannot be copied into the file after releaseFile, the chain reports a full disk to its owner, and continues", async () => {
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

/** Makes blocks up to this number, so that the index entries of all but the last one are in their table. */
async function makeBlocks(upTo: number, { chain, reported }: Awaited<ReturnType<typeof open>>): Promise<void> {
  for (let nonce = Number(chain.head.header.number); nonce < upTo; nonce += 1) {
    await submit(chain, nonce);
    await last(reported, `block ${nonce + 1}`);
  }
}

/** Number of rows written so far. The log of a SmallDisk counts as this long. */
function changes(disk: SmallDisk): number {
  return Number(disk.prepare("SELECT total_changes() AS total").get()?.["total"]);
}

function check(chain: Chain): boolean {
  let step = chain.checkIndexEntries(true);
  while (step.isMore) step = chain.checkIndexEntries(false);
  return step.isDamaged;
}

it("checkIndexEntries checks an undamaged index on a full disk, whatever the length of the log", async () => {
  const disk = new SmallDisk(":memory:");
  const { chain, reported } = await open(disk);
  disk.isFull = true;
  expect(check(chain)).toBe(false);
  expect(reported).toEqual([]);
  await chain.stop();
});

it("on a full disk only the rebuild of the index fails: blocks still fit into the log, and the next step continues the rebuild", async () => {
  const disk = new SmallDisk(":memory:");
  let others = 0;
  const opened = await open(disk, () => changes(disk) + others);
  const { chain, reported } = opened;
  await makeBlocks(18, opened);
  disk.exec("DELETE FROM places");
  disk.isFull = true;
  const steps = [true, false, false, false].map((isFirst) => chain.checkIndexEntries(isFirst).entries);
  expect(steps).toEqual([31, 4, 0, 31]); // The entries of 18 blocks in two steps, no rows, and the rebuild of 16 blocks.
  await makeBlocks(19, opened); // No step has found yet that the disk is full.
  others = LOG_BYTES_MAX; // As if further blocks had filled the log.
  const before = changes(disk);
  for (let failed = 0; failed < 2; failed += 1) {
    expect(() => chain.checkIndexEntries(false)).toThrow("database or disk is full");
  }
  expect(changes(disk)).toBe(before);
  await makeBlocks(20, opened);
  expect(reported).toEqual(Array.from({ length: 20 }, (_, index) => `block ${index + 1}`));
  disk.isFull = false;
  expect(chain.checkIndexEntries(false).entries).toBe(8); // Blocks 16 to 19.
  expect(chain.checkIndexEntries(false)).toEqual({ isMore: false, entries: 0, isDamaged: true });
  expect(check(chain)).toBe(false);
  await chain.stop();
});

it("a check of the index continues while the file is held, but a rebuild waits", async () => {
  const disk = new SmallDisk(":memory:");
  const opened = await open(disk, () => changes(disk));
  const { chain } = opened;
  await makeBlocks(18, opened);
  const entries = (isFirst = false) => chain.checkIndexEntries(isFirst).entries;
  disk.exec("DELETE FROM places");
  expect(chain.holdFile()).toBe(true);
  const before = changes(disk);
  expect([entries(true), entries(), entries(), entries(), entries()]).toEqual([31, 4, 0, 0, 0]); // The blocks in two steps, no rows, and twice nothing.
  expect(changes(disk)).toBe(before);
  chain.releaseFile();
  expect(entries()).toBe(31);
  expect(chain.holdFile()).toBe(true);
  disk.isFull = true;
  expect([entries(), entries()]).toEqual([0, 0]); // It does not copy the log either, although that is due.
  disk.isFull = false;
  chain.releaseFile();
  expect(entries()).toBe(4);
  expect(chain.checkIndexEntries(false)).toEqual({ isMore: false, entries: 0, isDamaged: true });
  expect(check(chain)).toBe(false);
  await chain.stop();
});
