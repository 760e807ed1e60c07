import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { getContractAddress, type Hex, hexToBytes, numberToBytes, numberToHex } from "viem";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ChainDamagedError } from "./chain-damaged-error.ts";
import { type EmbeddedChain, startEmbeddedChain } from "./embedded-chain.ts";
import { NodeStore } from "./state/node-store.ts";
import { ChainDatabase } from "./storage/chain-database.ts";
import { CHAIN_ID, FEES, SIGNER } from "./testing/client.ts";

/** Creation code of a contract: a call with a and b stores each number from a to b - 1 in the slot of that number. */
const SLOT_WRITER: Hex = "0x60188060095f395ff36020355f355b818110156016578080556001016005565b00";
const contract = getContractAddress({ from: SIGNER.address, nonce: 0n });
const slotsTotal = 40;

let folder: string;
let file: string;

function start(path = file): Promise<EmbeddedChain> {
  return startEmbeddedChain({ file: path, chainId: CHAIN_ID, genesisAccounts: [SIGNER.address] });
}

async function send(chain: EmbeddedChain, nonce: number, call: { readonly to?: Hex; readonly data?: Hex }) {
  const fields = { type: "eip1559", chainId: CHAIN_ID, ...FEES, gas: 20_000_000n, nonce } as const;
  await chain.submit(hexToBytes(await SIGNER.signTransaction({ ...fields, ...call })));
}

function word(value: number): string {
  return numberToHex(value, { size: 32 }).slice(2);
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "stele-chain-"));
  file = join(folder, "chain.db");
  await using chain = await start();
  await send(chain, 0, { data: SLOT_WRITER });
  await send(chain, 1, { to: contract, data: `0x${word(1)}${word(slotsTotal + 1)}` });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Asks for every value of the state. Counts wrong answers and refusals. */
function askAll(sqlite: DatabaseSyncInstance): { readonly wrong: number; readonly refused: number } {
  const database = new ChainDatabase(sqlite);
  const answers: (boolean | undefined)[] = [];
  const ask = (question: () => boolean): void => {
    try {
      answers.push(question());
    } catch (error) {
      if (!(error instanceof ChainDamagedError)) throw error;
      answers.push(undefined);
    }
  };
  ask(() => (database.loadUnsaved(), true));
  const view = new NodeStore(database, database.findHead()?.header.stateRoot).head();
  ask(() => view.findAccount(hexToBytes(SIGNER.address))?.nonce === 2n);
  ask(() => view.getCode(hexToBytes(contract)).length === 24);
  for (let slot = 1; slot <= slotsTotal; slot += 1) {
    ask(() => view.getStorage(hexToBytes(contract), numberToBytes(slot, { size: 32 }))[0] === slot);
  }
  return {
    wrong: answers.filter((answer) => answer === false).length,
    refused: answers.filter((answer) => answer === undefined).length,
  };
}

interface Stored {
  readonly at: Uint8Array | number;
  readonly bytes: Uint8Array;
}

/** Flips one bit in each row in turn, at varying offsets, and asks for every value. */
function damageEach(
  sqlite: DatabaseSyncInstance,
  table: "nodes" | "codes" | "unsaved",
  columns: readonly [string, string],
) {
  const [at, bytes] = columns;
  const rows = sqlite.prepare(`SELECT ${at} AS at, ${bytes} AS bytes FROM ${table}`).all() as Stored[];
  const write = sqlite.prepare(`UPDATE ${table} SET ${bytes} = ? WHERE ${at} = ?`);
  return rows.map((row, index) => {
    const damaged = Buffer.from(row.bytes);
    const place = (index * 37) % damaged.length;
    damaged[place] = (damaged[place] ?? 0) ^ (1 << (index % 8));
    write.run(damaged, row.at);
    const outcome = askAll(sqlite);
    write.run(row.bytes, row.at);
    return outcome;
  });
}

it("the chain refuses reads that depend on a damaged node or code, and never returns a wrong value", () => {
  const sqlite = new DatabaseSync(file);
  try {
    expect(askAll(sqlite)).toEqual({ wrong: 0, refused: 0 });
    const unsaved = damageEach(sqlite, "unsaved", ["number", "effects"]);
    const database = new ChainDatabase(sqlite);
    database.loadUnsaved();
    database.save();
    const nodes = damageEach(sqlite, "nodes", ["key", "node"]);
    const codes = damageEach(sqlite, "codes", ["hash", "code"]);
    expect(nodes.length).toBeGreaterThan(slotsTotal);
    expect([...unsaved, ...nodes, ...codes].filter(({ wrong }) => wrong > 0)).toEqual([]);
    expect([...nodes, ...codes].filter(({ refused }) => refused === 0)).toEqual([]);
  } finally {
    sqlite.close();
  }
});

it("a running chain reports a damaged state to its owner, and builds no block on that state", async () => {
  const copy = join(folder, "copy.db");
  copyFileSync(file, copy);
  const sqlite = new DatabaseSync(copy);
  const database = new ChainDatabase(sqlite);
  database.loadUnsaved();
  database.save();
  sqlite.exec(
    "UPDATE nodes SET node = CAST(substr(node, 1, 40) || x'00' || substr(node, 42) AS BLOB) WHERE key = CAST('A' AS BLOB)",
  );
  sqlite.close();
  await using chain = await start(copy);
  const reported = new Promise<Error>((resolve) => chain.on("damage", resolve));
  const balance = chain.request({ method: "eth_getBalance", params: [SIGNER.address, "latest"] });
  await expect(balance).rejects.toThrow(/^The state of the chain is damaged/);
  expect((await reported).message).toMatch(/does not match its hash/);
  await expect(send(chain, 2, { to: SIGNER.address })).rejects.toThrow(/^The state of the chain is damaged/);
  await expect(chain.reader.read({ method: "eth_getBalance", params: [SIGNER.address, "latest"] })).rejects.toThrow(
    /^The state of the chain is damaged/,
  );
  expect(await chain.request({ method: "eth_blockNumber" })).toBe("0x2");
});

it.each([
  ["truncated", "substr(header, 1, 40)"],
  ["not an RLP list", "CAST(x'00' || substr(header, 2) AS BLOB)"],
])("a chain refuses to start on a file whose newest header is %s, and says to restore the file", async (_, header) => {
  const copy = join(folder, "header.db");
  copyFileSync(file, copy);
  const sqlite = new DatabaseSync(copy);
  sqlite.exec(`UPDATE blocks SET header = ${header} WHERE number = (SELECT max(number) FROM blocks)`);
  sqlite.close();
  await expect(start(copy)).rejects.toThrow(/header\.db is damaged: .* Restore its folder from a backup\.$/);
});
