import { copyFileSync, mkdtempSync, rmSync, statSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { bloomBytes, fromHex, keccak256, toLatin1 } from "@stele/eth/node";
import fc from "fast-check";
import { afterEach, beforeEach, expect, it } from "vitest";
import { encodeHeader, type Header, ZERO_HASH } from "../blocks/header.ts";
import { parseTransaction } from "../blocks/transaction.ts";
import { BlockReader } from "../chain/block-reader.ts";
import { CHAIN_ID, FEES, SIGNER } from "../testing/client.ts";
import { type BlockCommit, ChainDatabase } from "./chain-database.ts";
import { addressKey } from "./places.ts";
import { SCHEMA } from "./schema.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "stele-chain-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const raws = await Promise.all(
  Array.from({ length: 4 }, (_, nonce) =>
    SIGNER.signTransaction({ type: "eip1559", chainId: CHAIN_ID, ...FEES, gas: 21_000n, nonce, to: SIGNER.address }),
  ),
);
const keys = Array.from({ length: 12 }, (_, index) => `A${String.fromCharCode(index)}`);
const emitters = [1, 2, 3].map((fill) => new Uint8Array(20).fill(fill));

const node = fc.option(fc.uint8Array({ minLength: 32, maxLength: 700 }).map(toLatin1), { nil: undefined });
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("commit" as const),
      nodes: fc.dictionary(fc.constantFrom(...keys), node, { minKeys: 1, maxKeys: 6 }),
      emitters: fc.array(fc.subarray(emitters), { maxLength: raws.length }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("save" as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("checkpoint" as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("kill" as const), kept: fc.double({ min: 0, max: 1, noNaN: true }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("read" as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never;
type Commit = Extract<Step, { kind: "commit" }>;

/** The expected content, which no save and no kill changes. */
interface Known {
  readonly nodes: ReadonlyMap<string, string>;
  readonly places: ReadonlyMap<number, readonly number[]>;
  readonly blocks: readonly Uint8Array[];
}

const none: Known = { nodes: new Map(), places: new Map(), blocks: [] };

function toCommit(known: Known, { nodes, emitters: perTransaction }: Commit): BlockCommit {
  const number = BigInt(known.blocks.length);
  const header: Header = {
    parentHash: known.blocks.at(-1) ?? ZERO_HASH,
    stateRoot: ZERO_HASH,
    transactionsRoot: ZERO_HASH,
    receiptsRoot: ZERO_HASH,
    logsBloom: new Uint8Array(bloomBytes),
    number,
    gasLimit: 1n,
    gasUsed: 0n,
    timestamp: 0n,
    baseFeePerGas: 7n,
  };
  const executed = perTransaction.map((addresses, index) => ({
    transaction: parseTransaction(fromHex(raws[index] ?? ""), fromHex(SIGNER.address)),
    receipt: {
      isSuccess: true,
      gasUsed: 1n,
      cumulativeGasUsed: 1n,
      effectiveGasPrice: 7n,
      firstLogIndex: 0,
      logs: addresses.map((address) => ({ address, topics: [], data: new Uint8Array(0) })),
    },
  }));
  const block = { header, hash: keccak256(encodeHeader(header)), executed };
  return { block, nodes: new Map(Object.entries(nodes)), codes: [] };
}

function after(known: Known, { block, nodes }: BlockCommit): Known {
  const all = new Map(known.nodes);
  for (const [key, text] of nodes) {
    if (text === undefined) all.delete(key);
    else all.set(key, text);
  }
  const places = new Map(known.places);
  for (const [index, { receipt }] of block.executed.entries()) {
    for (const { address } of receipt.logs) {
      const key = addressKey(address);
      places.set(key, [...(places.get(key) ?? []), Number(block.header.number) * 2 ** 20 + index]);
    }
  }
  return { nodes: all, places, blocks: [...known.blocks, block.hash] };
}

function expectKnows(database: ChainDatabase, known: Known): void {
  const found = keys.flatMap((key) => {
    const bytes = database.readNode(key);
    return bytes === undefined ? [] : [[key, toLatin1(bytes)] as const];
  });
  expect(new Map(found)).toEqual(known.nodes);
  for (const address of emitters) {
    const places = known.places.get(addressKey(address)) ?? [];
    expect([...database.readPlaces(addressKey(address))]).toEqual(places);
    const [first, last] = [places[1] ?? 0, places.at(-1) ?? 0];
    expect([...database.readPlaces(addressKey(address), first, last)]).toEqual(
      places.filter((one) => one >= first && one < last),
    );
  }
  const reader = new BlockReader(database);
  for (const [number, hash] of known.blocks.entries()) {
    expect(reader.findHeadByHash(hash)?.header.number).toBe(BigInt(number));
  }
  expect(Number(database.findHead()?.header.number ?? -1n)).toBe(known.blocks.length - 1);
}

/** A chain's tables in a file, a reader of them, and the content that both must have. */
class World {
  #generation = 0;
  #sqlite = this.#create();
  #database = new ChainDatabase(this.#sqlite);
  #reader: { readonly sqlite: DatabaseSyncInstance; readonly database: ChainDatabase } | undefined;
  #known = none;
  #before = none;
  /** Length of the log before the last commit; undefined if the commit did not make it longer, or another step wrote since. */
  #logBefore: number | undefined;

  async take(step: Step): Promise<void> {
    if (step.kind === "commit") return this.#commit(step);
    if (step.kind === "kill") return this.#kill(step.kept);
    if (step.kind === "read") return this.#read();
    this.#logBefore = undefined;
    if (step.kind === "save") this.#database.save();
    else this.#database.checkpoint();
    expectKnows(this.#database, this.#known);
  }

  close(): void {
    this.#reader?.sqlite.close();
    this.#reader = undefined;
    this.#sqlite.close();
  }

  #commit(step: Commit): void {
    const commit = toCommit(this.#known, step);
    const log = statSync(`${this.#file}-wal`).size;
    this.#database.commitBlock(commit);
    [this.#before, this.#known] = [this.#known, after(this.#known, commit)];
    this.#logBefore = statSync(`${this.#file}-wal`).size > log ? log : undefined;
    expectKnows(this.#database, this.#known);
  }

  /**
   * Continues with copies of the files, as another process does after a kill. If the last step wrote a block, the log is cut within that block, which may then
   * be lost.
   */
  #kill(kept: number): void {
    const [from, log] = [this.#file, `${this.#file}-wal`];
    this.#generation += 1;
    copyFileSync(from, this.#file);
    copyFileSync(log, `${this.#file}-wal`);
    const { size } = statSync(log);
    const cut = this.#logBefore === undefined ? size : Math.floor(this.#logBefore + (size - this.#logBefore) * kept);
    truncateSync(`${this.#file}-wal`, cut);
    this.close();
    this.#sqlite = this.#open({});
    this.#database = new ChainDatabase(this.#sqlite);
    this.#database.loadUnsaved();
    if (cut < size && this.#database.findHead()?.header.number !== BigInt(this.#known.blocks.length - 1)) {
      this.#known = this.#before;
    }
    this.#logBefore = undefined;
    expectKnows(this.#database, this.#known);
  }

  async #read(): Promise<void> {
    if (this.#reader === undefined) {
      const sqlite = this.#open({ readOnly: true });
      this.#reader = { sqlite, database: new ChainDatabase(sqlite) };
    }
    const { database } = this.#reader;
    await database.readSnapshot(async () => expectKnows(database, this.#known));
  }

  get #file(): string {
    return join(folder, `chain-${this.#generation}.db`);
  }

  #create(): DatabaseSyncInstance {
    const sqlite = this.#open({});
    sqlite.exec(SCHEMA);
    return sqlite;
  }

  #open(options: { readonly readOnly?: boolean }): DatabaseSyncInstance {
    const sqlite = new DatabaseSync(this.#file, options);
    if (options.readOnly !== true) {
      sqlite.exec(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0; BEGIN IMMEDIATE; COMMIT",
      );
    }
    return sqlite;
  }
}

it("ChainDatabase returns the same content with saved and unsaved effects, also to a reader and after a kill", async () => {
  await fc.assert(
    fc
      .asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async (steps) => {
        const world = new World();
        try {
          for (const one of steps) await world.take(one);
        } finally {
          world.close();
        }
      })
      .afterEach(() => {
        rmSync(folder, { recursive: true });
        folder = mkdtempSync(join(tmpdir(), "stele-chain-"));
      }),
    { numRuns: 60 },
  );
});
