import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { getContractAddress, type Hex, numberToHex } from "viem";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { type EmbeddedChain, startEmbeddedChain } from "../embedded-chain.ts";
import type { CheckedState, StatePlace } from "../messages.ts";
import { CheckedSource } from "../state/checked-source.ts";
import { ChainDatabase } from "../storage/chain-database.ts";
import { CHAIN_ID, FEES, SIGNER } from "../testing/client.ts";
import { checkState } from "./check-state.ts";

/** Creation code of a contract: a call with a and b stores each number from a to b - 1 in the slot of that number. */
const SLOT_WRITER: Hex = "0x60188060095f395ff36020355f355b818110156016578080556001016005565b00";
const contracts = [0, 1].map((nonce) => getContractAddress({ from: SIGNER.address, nonce: BigInt(nonce) }));
const slotsTotal = 300;
/** Smallest number of nodes in a step with which `checkState` always makes progress. */
const nodesMax = 129;

let folder: string;
let file: string;

/** Starts a chain that writes the effects of each block into their tables before the next block. */
function start(path: string): Promise<EmbeddedChain> {
  const settings = { chainId: CHAIN_ID, genesisAccounts: [SIGNER.address], unsavedBytesMax: 0 };
  return startEmbeddedChain({ file: path, ...settings });
}

async function send(chain: EmbeddedChain, nonce: number, call: { readonly to?: Hex; readonly data?: Hex }) {
  const fields = { type: "eip1559", chainId: CHAIN_ID, ...FEES, gas: 20_000_000n, nonce } as const;
  const hash = await chain.request({
    method: "eth_sendRawTransaction",
    params: [await SIGNER.signTransaction({ ...fields, ...call })],
  });
  const receipt = (): Promise<unknown> => chain.request({ method: "eth_getTransactionReceipt", params: [hash] });
  await vi.waitFor(async () => expect(await receipt()).not.toBeNull(), 10_000);
}

function word(value: number): string {
  return numberToHex(value, { size: 32 }).slice(2);
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "stele-chain-"));
  file = join(folder, "chain.db");
  await using chain = await start(file);
  for (const nonce of [0, 1]) await send(chain, nonce, { data: SLOT_WRITER });
  const data: Hex = `0x${word(1)}${word(slotsTotal + 1)}`;
  for (const [index, to] of contracts.entries()) await send(chain, 2 + index, { to, data });
  await send(chain, 4, { to: SIGNER.address });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("checkState", () => {
  let sqlite: DatabaseSyncInstance;
  beforeEach(() => {
    const copy = join(folder, "copy.db");
    copyFileSync(file, copy);
    sqlite = new DatabaseSync(copy);
    const database = new ChainDatabase(sqlite);
    database.loadUnsaved();
    database.save();
  });
  afterEach(() => sqlite.close());

  /** All steps of one round. */
  function checkAll(): readonly CheckedState[] {
    const database = new ChainDatabase(sqlite);
    database.loadUnsaved();
    const root = database.findHead()?.header.stateRoot ?? new Uint8Array();
    const parts = { source: new CheckedSource(database), root, repairNode: repairNothing, repairCode: repairNothing };
    const steps: CheckedState[] = [];
    let from: StatePlace | undefined;
    do {
      const step = checkState(parts, from, nodesMax);
      steps.push(step);
      from = step.next;
    } while (from !== undefined);
    return steps;
  }

  it("checkState reads every node of an undamaged state in several steps", () => {
    const steps = checkAll();
    const { count } = sqlite.prepare("SELECT count(*) AS count FROM nodes").get() as { count: number };
    expect(damagedIn(steps)).toEqual([]);
    expect(steps.length).toBeGreaterThan(2);
    expect(steps.reduce((sum, { nodes }) => sum + nodes, 0)).toBeGreaterThanOrEqual(count);
  });

  it.each([
    ["nodes", "key", "node", 1],
    // Both contracts have the same code: the check reads it twice.
    ["codes", "hash", "code", 2],
  ])("checkState finds a flipped bit in every fifth row of %s", (...[table, key, bytes, timesSeen]) => {
    const rows = sqlite.prepare(`SELECT ${key} AS at, ${bytes} AS bytes FROM ${table}`).all() as {
      readonly at: Uint8Array;
      readonly bytes: Uint8Array;
    }[];
    const write = sqlite.prepare(`UPDATE ${table} SET ${bytes} = ? WHERE ${key} = ?`);
    const counts = rows
      .filter((_, index) => index % 5 === 0)
      .map((row, index) => {
        const damaged = Buffer.from(row.bytes);
        const place = (index * 37) % damaged.length;
        damaged[place] = (damaged[place] ?? 0) ^ (1 << (index % 8));
        write.run(damaged, row.at);
        const found = damagedIn(checkAll());
        write.run(row.bytes, row.at);
        return found.length;
      });
    expect(counts.length).toBeGreaterThan(0);
    expect(counts.filter((count) => count !== timesSeen)).toEqual([]);
  });

  it("checkState continues after a missing trie node", () => {
    sqlite.exec("DELETE FROM nodes WHERE length(key) = 34");
    const damaged = damagedIn(checkAll());
    expect(damaged.length).toBeGreaterThan(2);
    expect(damaged[0]).toMatch(/^The state of the chain is damaged: a node is missing/);
  });
});

it("checkState repairs a damaged node or code only if the running chain has an intact copy in memory", async () => {
  const copy = join(folder, "running.db");
  copyFileSync(file, copy);
  await using chain = await start(copy);
  await chain.request({ method: "eth_getStorageAt", params: [contracts[0], "0x1", "latest"] });
  await chain.request({ method: "eth_getCode", params: [contracts[0], "latest"] });
  const sqlite = new DatabaseSync(copy);
  sqlite.exec("PRAGMA busy_timeout = 5000");
  // Damages the storage roots of both contracts, and their common code. Only one of the roots is in memory.
  sqlite.exec("UPDATE nodes SET node = CAST(node || x'00' AS BLOB) WHERE length(key) = 33");
  sqlite.exec("UPDATE codes SET code = CAST(code || x'00' AS BLOB)");
  sqlite.close();
  expect(await roundOf(chain)).toEqual({ repaired: 2, damaged: 1 });
  expect(await roundOf(chain)).toEqual({ repaired: 0, damaged: 1 });
});

async function roundOf(chain: EmbeddedChain) {
  const sum = { repaired: 0, damaged: 0 };
  let from: StatePlace | undefined;
  do {
    const { next, repaired, damaged } = await chain.checkState(from);
    sum.repaired += repaired;
    sum.damaged += damaged.length;
    from = next;
  } while (from !== undefined);
  return sum;
}

function repairNothing(): boolean {
  return false;
}

function damagedIn(steps: readonly CheckedState[]): readonly string[] {
  return steps.flatMap(({ damaged }) => damaged);
}
