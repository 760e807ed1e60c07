import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { getContractAddress, type Hex, hexToBytes } from "viem";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { type EmbeddedChain, type EmbeddedChainOptions, startEmbeddedChain } from "../embedded-chain.ts";
import { CHECKED_BYTES_MAX } from "../limits.ts";
import { placesTable } from "../storage/schema.ts";
import { CHAIN_ID, FEES, SIGNER } from "../testing/client.ts";

/** Creation code of a contract that logs the data that it is called with: CALLDATACOPY, then LOG0. */
const LOGGER: Hex = "0x60088060095f395ff3365f5f37365fa000";
const address = getContractAddress({ from: SIGNER.address, nonce: 0n });
const logsTotal = 40;
/** SQLite's pages: their length, the first byte of two kinds of pages, and the offset at which these kinds name their last child page. */
const [PAGE_BYTES, INTERIOR_INDEX, INTERIOR_TABLE, LAST_CHILD_AT] = [4_096, 2, 5, 8];

let folder: string;
let file: string;
const hashes: unknown[] = [];

/** Starts a chain that saves the index entries of each block into their table before the next block. */
function start(path: string, options: Partial<EmbeddedChainOptions> = {}): Promise<EmbeddedChain> {
  const fixed = { chainId: CHAIN_ID, genesisAccounts: [SIGNER.address], unsavedBytesMax: 1 };
  return startEmbeddedChain({ file: path, ...fixed, ...options });
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "stele-chain-"));
  file = join(folder, "chain.db");
  await using chain = await start(file);
  for (let nonce = 0; nonce <= logsTotal; nonce += 1) {
    const call = nonce === 0 ? { data: LOGGER } : { to: address, data: `0x${"ab".repeat(nonce)}` as const };
    const fields = { type: "eip1559", chainId: CHAIN_ID, ...FEES, gas: 1_000_000n, nonce } as const;
    const raw = await SIGNER.signTransaction({ ...fields, ...call });
    const hash = await chain.request({ method: "eth_sendRawTransaction", params: [raw] });
    hashes.push(hash);
    const receipt = (): Promise<unknown> => chain.request({ method: "eth_getTransactionReceipt", params: [hash] });
    await vi.waitFor(async () => expect(await receipt()).toMatchObject({ status: "0x1" }), 10_000);
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Counts the chain's logs and transactions that a search finds. */
async function countFound(chain: EmbeddedChain): Promise<{ readonly logs: number; readonly transactions: number }> {
  const params = [{ address, fromBlock: "0x0", toBlock: "latest" }];
  const logs = (await chain.request({ method: "eth_getLogs", params })) as readonly unknown[]; // As the method says.
  const found = await Promise.all(
    hashes.map((hash) => chain.request({ method: "eth_getTransactionByHash", params: [hash] })),
  );
  return { logs: logs.length, transactions: found.filter((one) => one !== null).length };
}

const everything = { logs: logsTotal, transactions: logsTotal + 1 };

async function check(chain: EmbeddedChain, isFirst = true): Promise<boolean> {
  let step = await chain.checkIndexEntries(isFirst);
  while (step.isMore) step = await chain.checkIndexEntries(false);
  return step.isDamaged;
}

/** Makes the next block, with one log, so that the index entries of the block before it are saved. */
async function makeBlock(chain: EmbeddedChain): Promise<void> {
  const fields = { type: "eip1559", chainId: CHAIN_ID, ...FEES, gas: 1_000_000n, to: address, data: "0x" } as const;
  await chain.submit(hexToBytes(await SIGNER.signTransaction({ ...fields, nonce: logsTotal + 1 })));
  await vi.waitFor(async () => expect(await chain.request({ method: "eth_blockNumber" })).toBe("0x2a"), 10_000);
}

/** Copies the chain's file, and changes the copy. */
function damaged(change: (sqlite: DatabaseSyncInstance) => void): string {
  const copy = join(folder, `copy-${Math.random()}.db`);
  copyFileSync(file, copy);
  const sqlite = new DatabaseSync(copy);
  change(sqlite);
  sqlite.close();
  return copy;
}

function flipSql(column: string, bit: number): string {
  const flipped = `(${column} | (1 << ${bit})) - (${column} & (1 << ${bit}))`;
  return `UPDATE OR REPLACE places SET ${column} = ${flipped} WHERE place = 20 << 20`;
}

/** Where the root page of a table begins in the file. */
function rootPageAt(path: string, table: string): number {
  const sqlite = new DatabaseSync(path, { readOnly: true });
  const row = sqlite.prepare("SELECT rootpage FROM sqlite_schema WHERE name = ?").get(table) as { rootpage: number };
  sqlite.close();
  return (row.rootpage - 1) * PAGE_BYTES;
}

/** Flips a bit `before` bytes before the end of the root page of a table. */
function flipBit(path: string, table: string, before: number): void {
  const at = rootPageAt(path, table) + PAGE_BYTES - before;
  const bytes = readFileSync(path);
  bytes[at] = (bytes[at] ?? 0) ^ 0x10;
  writeFileSync(path, bytes);
}

function copyWithUnreadableIndex(): string {
  const copy = damaged(() => undefined);
  flipBit(copy, "places", PAGE_BYTES);
  return copy;
}

it("checkIndexEntries finds no damage in an undamaged index", async () => {
  await using chain = await start(damaged(() => undefined));
  expect(await check(chain)).toBe(false);
  expect(await countFound(chain)).toEqual(everything);
});

it("checkIndexEntries derives the entries of one large block per step, because new blocks wait for each step", async () => {
  await using chain = await start(join(folder, "large.db"));
  const fields = { type: "eip1559", chainId: CHAIN_ID, ...FEES, gas: 10_000_000n, to: SIGNER.address } as const;
  for (let nonce = 0; nonce < 3; nonce += 1) {
    const raw = await SIGNER.signTransaction({ ...fields, nonce, data: `0x${"ab".repeat(CHECKED_BYTES_MAX)}` });
    await chain.submit(hexToBytes(raw));
  }
  // Block 0 has one entry. Each other block has two: its own hash and its transaction's. The last block is not saved yet.
  const steps = [await chain.checkIndexEntries(true), await chain.checkIndexEntries(false)];
  expect(steps.map(({ entries }) => entries)).toEqual([3, 2]);
  expect(await check(chain)).toBe(false);
});

it.each([
  ["a place that is missing", "DELETE FROM places WHERE key = (SELECT key FROM places LIMIT 1)"],
  ["all places missing", "DELETE FROM places"],
  ["a place too many", "INSERT INTO places (key, place) VALUES (1, 2)"],
  ...[0, 20, 24, 42].map((bit) => [`bit ${bit} of a place flipped`, flipSql("place", bit)]),
  ...[0, 17, 31, 32, 47].map((bit) => [`bit ${bit} of a key flipped`, flipSql("key", bit)]),
])("checkIndexEntries rebuilds the index after damage: %s", async (_, statement) => {
  await using chain = await start(damaged((sqlite) => sqlite.exec(statement ?? "")));
  expect(await check(chain)).toBe(true);
  expect(await countFound(chain)).toEqual(everything);
  expect(await check(chain)).toBe(false);
});

/** Offset of the damaged number in the effects of a block. Before it are the number of entries, two entries of hashes and, for a place, its key. */
it.each([
  ["a key", 36],
  ["a place", 44],
])(
  "after a bit flip in %s of an unsaved index entry, searches find all logs, checkIndexEntries reports the damage, and new blocks follow",
  async (_, at) => {
    const flipped = `CAST(substr(effects, 1, ${at + 7}) || x'01' || substr(effects, ${at + 9}) AS BLOB)`;
    await using chain = await start(damaged((sqlite) => sqlite.exec(`UPDATE unsaved SET effects = ${flipped}`)));
    expect(await countFound(chain)).toEqual(everything);
    expect(await check(chain)).toBe(true);
    expect(await check(chain)).toBe(false);
    await makeBlock(chain);
    expect(await check(chain)).toBe(false);
    expect(await countFound(chain)).toEqual({ ...everything, logs: logsTotal + 1 });
  },
);

it("a chain starts, and can be read and repaired, although an unsaved index entry and its block are damaged", async () => {
  const newest = logsTotal + 1;
  const copy = damaged((sqlite) => {
    sqlite.exec("UPDATE unsaved SET effects = CAST(substr(effects, 1, 43) || x'01' || substr(effects, 45) AS BLOB)");
    const row = sqlite.prepare("SELECT raw FROM transactions ORDER BY place DESC LIMIT 1").get();
    const raw = Buffer.from((row as { raw: Uint8Array }).raw); // The statement's column.
    raw[raw.indexOf("ababab", "hex")] = 0;
    sqlite.prepare("UPDATE transactions SET raw = ? WHERE place = ?").run(raw, newest * 2 ** 20);
  });
  await using chain = await start(copy);
  expect(await chain.reader.read({ method: "eth_blockNumber", params: [] })).toBe('"0x29"');
  expect(await check(chain)).toBe(true);
  expect(await chain.checkBlocks({ from: newest, to: newest })).toMatchObject({ damaged: [{ number: newest }] });
  const data = new Uint8Array(logsTotal).fill(0xab);
  const known = { hash: hexToBytes(hashes[logsTotal] as Hex), data, logged: [data] };
  expect(await chain.repairBlock(newest, [known])).toBe(true);
  await makeBlock(chain);
  expect(await check(chain)).toBe(true);
  expect(await check(chain)).toBe(false);
  expect(await countFound(chain)).toEqual({ ...everything, logs: logsTotal + 1 });
});

it("checkIndexEntries names the file and what to do if the disk is full, and then starts over", async () => {
  const copy = damaged((sqlite) => sqlite.exec("DELETE FROM places"));
  await using chain = await start(copy, { filePagesMax: 1 });
  const full = `The chain file ${copy} cannot grow, the disk is full (database or disk is full). Free some space.`;
  await expect(check(chain)).rejects.toThrow(full);
  await expect(check(chain, false)).rejects.toThrow(full);
});

it("the error of checkIndexEntries says that the file of a running chain cannot be read or written", async () => {
  const copy = damaged((sqlite) => sqlite.exec("DELETE FROM places"));
  await using chain = await start(copy);
  const other = new DatabaseSync(copy);
  other.exec("BEGIN IMMEDIATE");
  await expect(check(chain)).rejects.toThrow(
    `The chain file ${copy} cannot be read or written: database is locked. Check its disk, and that no other program uses the file.`,
  );
  other.exec("ROLLBACK");
  other.close();
  expect(await check(chain)).toBe(true);
});

it.each([
  ["a transaction that its block does not have", 0],
  ["a block that the chain does not have", 30],
])("the chain refuses a read whose index entry points to %s", async (_, bit) => {
  await using chain = await start(damaged((sqlite) => sqlite.exec(flipSql("place", bit))));
  const refused = /index of hashes and logs is damaged/;
  const logs = [{ address, fromBlock: "0x1", toBlock: "latest" }];
  if (bit === 0) await expect(chain.request({ method: "eth_getLogs", params: logs })).rejects.toThrow(refused);
  const [hash] = hashes.slice(19);
  await expect(chain.request({ method: "eth_getTransactionByHash", params: [hash] })).rejects.toThrow(refused);
  expect(await check(chain)).toBe(true);
  expect(await countFound(chain)).toEqual(everything);
});

/** The page has its kind at the start and its rows at the end. A flipped bit makes the page unreadable, or breaks the order of rows that searches need. */
it.each([8, 9, 100, 333, 1_000, 1_001, 1_500, PAGE_BYTES])(
  "checkIndexEntries rebuilds the index after a bit flip %i bytes before the end of its root page",
  async (before) => {
    const copy = damaged(() => undefined);
    flipBit(copy, "places", before);
    await using chain = await start(copy);
    expect(await check(chain)).toBe(true);
    expect(await countFound(chain)).toEqual(everything);
  },
);

it("checkIndexEntries rebuilds an unreadable index again and again, even if a rebuild was interrupted and its table is damaged too", async () => {
  const copy = damaged((sqlite) => sqlite.exec(placesTable("new_places")));
  flipBit(copy, "new_places", PAGE_BYTES);
  for (let round = 0; round < 3; round += 1) {
    flipBit(copy, "places", PAGE_BYTES);
    await using chain = await start(copy);
    expect(await check(chain)).toBe(true);
    expect(await countFound(chain)).toEqual(everything);
  }
});

it("a rebuild that starts over in the same process reuses its table, so that the file does not grow each time", async () => {
  let steps = 0;
  await using whole = await start(copyWithUnreadableIndex());
  for (let isMore = true; isMore; steps += 1) ({ isMore } = await whole.checkIndexEntries(steps === 0));
  const copy = copyWithUnreadableIndex();
  const chain = await start(copy);
  for (let round = 0; round < 3; round += 1) {
    for (let step = 0; step < steps - 2; step += 1) await chain.checkIndexEntries(step === 0); // All but the end of the rebuild.
  }
  expect(await check(chain)).toBe(true);
  expect(await countFound(chain)).toEqual(everything);
  await chain.stop();
  const sqlite = new DatabaseSync(copy, { readOnly: true });
  const tables = sqlite.prepare("SELECT name FROM sqlite_schema WHERE name LIKE '%places%' AND type = 'table'").all();
  sqlite.close();
  expect(tables).toEqual([{ name: "damaged_places_1" }, { name: "places" }]);
});

it.each([
  ["the index", "places"],
  ["what an interrupted rebuild has left", "new_places"],
])("checkIndexEntries frees no page of another table, even if a damaged page of %s refers to it", async (_, table) => {
  const rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT 1, i FROM n";
  const copy = damaged((sqlite) => {
    sqlite.exec(placesTable("new_places"));
    for (const one of ["places", "new_places"]) sqlite.exec(`INSERT INTO ${one} (key, place) ${rows}`); // Their root pages then have children.
  });
  const bytes = readFileSync(copy);
  const [from, to] = [rootPageAt(copy, "transactions"), rootPageAt(copy, table)];
  expect([bytes[from], bytes[to]]).toEqual([INTERIOR_TABLE, INTERIOR_INDEX]);
  bytes.copy(bytes, to + LAST_CHILD_AT, from + LAST_CHILD_AT, from + LAST_CHILD_AT + 4);
  writeFileSync(copy, bytes);
  await using chain = await start(copy);
  expect(await check(chain)).toBe(true);
  // The next block would be written over free pages.
  const fields = { type: "eip1559", chainId: CHAIN_ID, ...FEES, gas: 10_000_000n, to: SIGNER.address } as const;
  const data: Hex = `0x${"ab".repeat(8 * PAGE_BYTES)}`;
  await chain.submit(hexToBytes(await SIGNER.signTransaction({ ...fields, nonce: logsTotal + 1, data })));
  await vi.waitFor(async () => expect(await chain.request({ method: "eth_blockNumber" })).toBe("0x2a"), 10_000);
  expect(await countFound(chain)).toEqual(everything);
});
