import { cpSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { keccak256, toHex } from "@stele/eth/node";
import { hexToBytes } from "viem";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ChainFileError } from "./chain-file-error.ts";
import { type EmbeddedChain, startEmbeddedChain } from "./embedded-chain.ts";
import { headFileOf, readHeadFile } from "./storage/head-file.ts";
import { CHAIN_ID, FEES, PAUPER, SIGNER } from "./testing/client.ts";

const name = "chain.db";
let root: string;
let folder: string;
let file: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "stele-chain-"));
  folder = mkdtempSync(join(root, "live-"));
  file = join(folder, name);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function start(path = file, needsHeadFile = true): Promise<EmbeddedChain> {
  return startEmbeddedChain({ file: path, chainId: CHAIN_ID, genesisAccounts: [SIGNER.address], needsHeadFile });
}

/** Resolves once the block is on disk. */
async function seal(chain: EmbeddedChain, nonce: number, value = 1n): Promise<void> {
  const fields = { type: "eip1559", chainId: CHAIN_ID, ...FEES, gas: 21_000n, nonce } as const;
  await chain.submit(hexToBytes(await SIGNER.signTransaction({ ...fields, to: PAUPER.address, value })));
}

async function run(nonces: readonly number[], path = file, value?: bigint): Promise<void> {
  await using chain = await start(path);
  for (const nonce of nonces) await seal(chain, nonce, value);
}

/** Copies the folder as a kill would leave it. */
function keep(title: string): string {
  const kept = join(root, title);
  cpSync(folder, kept, { recursive: true });
  rmSync(join(kept, `${name}-lock`), { force: true });
  return join(kept, name);
}

/** Hashes of the non-empty files, by name, without the lock and the index of the write-ahead log, which hold no data. SQLite may create an empty log. */
function contentsOf(path: string): ReadonlyMap<string, string> {
  const names = readdirSync(path).filter((one) => !/-(shm|lock|lock-journal)$/.test(one));
  const contents = names.map((one) => [one, readFileSync(join(path, one))] as const);
  return new Map(contents.filter(([, { length }]) => length > 0).map(([one, bytes]) => [one, toHex(keccak256(bytes))]));
}

async function expectRefused(path: string, says: RegExp): Promise<void> {
  const before = contentsOf(join(path, ".."));
  const starting = start(path);
  await expect(starting).rejects.toThrow(ChainFileError);
  await expect(starting).rejects.toThrow(says);
  expect(contentsOf(join(path, ".."))).toEqual(before);
}

function replaceChain(from: string, to: string): void {
  for (const end of ["", "-wal", "-shm"]) rmSync(to + end, { force: true });
  cpSync(from, to);
}

describe("a chain that has lost blocks", () => {
  it.each(["stop", "kill"] as const)(
    "a chain that has lost blocks is refused after a %s, and no file changes",
    async (end) => {
      await run([0, 1]);
      const earlier = keep("earlier");
      const chain = await start();
      for (const nonce of [2, 3, 4]) await seal(chain, nonce);
      const killed = keep("killed");
      await chain.stop();
      const path = end === "kill" ? killed : keep("stopped");
      replaceChain(earlier, path);
      await expectRefused(
        path,
        /lost blocks.*ends with block 2.*knows block 5.*Restore .*delete nothing.*echo accept > /,
      );
    },
  );

  it("a chain that has lost only its last block is refused", async () => {
    const chain = await start();
    await seal(chain, 0);
    const earlier = keep("earlier");
    await seal(chain, 1);
    const path = keep("killed");
    await chain.stop();
    replaceChain(earlier, path);
    cpSync(`${earlier}-wal`, `${path}-wal`);
    await expectRefused(path, /ends with block 1.*knows block 2/);
  });

  it("a chain that has lost blocks starts once an operator has accepted it, and records its next blocks in the head file", async () => {
    await run([0, 1]);
    const earlier = keep("earlier");
    await run([2, 3]);
    const path = keep("stopped");
    replaceChain(earlier, path);
    writeFileSync(headFileOf(path), "accept\n");
    await run([2], path);
    expect(readHeadFile(path)).toMatchObject({ status: "intact", number: 3n });
  });
});

it("refuses another chain of the same length", async () => {
  await run([0, 1]);
  const other = join(mkdtempSync(join(root, "other-")), name);
  await run([0, 1], other, 2n);
  const path = keep("stopped");
  replaceChain(other, path);
  await expectRefused(path, /another one than before, or damaged: the chain has 0x[0-9a-f]{64} as block 2.*Restore/);
});

describe("a chain without an intact head file", () => {
  const faults: readonly (readonly [string, (path: string) => void])[] = [
    ["missing", (path) => rmSync(headFileOf(path))],
    ["damaged", (path) => writeFileSync(headFileOf(path), "stele chain head 1\n")],
  ];

  it.each(faults)("a chain whose head file is %s is refused if there is no index", async (status, cause) => {
    await run([0, 1]);
    cause(file);
    await expectRefused(file, new RegExp(`-head is ${status}, and there is no index.*Restore.*echo accept`));
  });

  it.each(faults)(
    "a chain whose head file is %s starts if there is an index, and writes the head file with the next block",
    async (_, cause) => {
      await run([0, 1]);
      cause(file);
      const chain = await start(file, false);
      await seal(chain, 2);
      const killed = keep("killed");
      await chain.stop();
      expect(readHeadFile(killed)).toMatchObject({ status: "intact", number: 3n });
    },
  );

  it.each(faults)("a clean stop writes an intact head file if the head file was %s", async (_, cause) => {
    await run([0, 1]);
    cause(file);
    await (await start(file, false)).stop();
    expect(readHeadFile(file)).toMatchObject({ status: "intact", number: 2n });
  });

  it("a stop with keepsLog leaves a damaged head file as it is", async () => {
    await run([0, 1]);
    writeFileSync(headFileOf(file), "damaged");
    await (await start(file, false)).stop(undefined, { keepsLog: true });
    expect(readFileSync(headFileOf(file), "utf8")).toBe("damaged");
  });

  it("a stop writes no head file if another chain's file has taken the place of the chain's file", async () => {
    await run([0, 1]);
    const chain = await start();
    renameSync(folder, `${folder}-away`);
    cpSync(`${folder}-away`, folder, { recursive: true });
    rmSync(headFileOf(file)); // As in a restored folder.
    await chain.stop();
    expect(readHeadFile(file)).toEqual({ status: "missing" });
    expect(readHeadFile(join(`${folder}-away`, name))).toMatchObject({ status: "intact" });
  });

  it("a chain with only block 0 has no head file, and starts again without one", async () => {
    await (await start()).stop();
    expect(readHeadFile(file)).toEqual({ status: "missing" });
    await (await start()).stop();
  });
});
