import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { expect, it } from "vitest";
import { startEmbeddedChain } from "../embedded-chain.ts";
import { CHAIN_ID } from "../testing/client.ts";
import { ReaderThread } from "./reader-thread.ts";

it("a request that takes too long within a call of SQLite ends the thread, and not the process", async () => {
  const folder = await mkdtemp(join(tmpdir(), "stele-reader-thread-"));
  const file = join(folder, "chain.db");
  await (await startEmbeddedChain({ file, chainId: CHAIN_ID, genesisAccounts: [] })).stop();
  const owner = new DatabaseSync(file);
  owner.exec("PRAGMA journal_mode = DELETE"); // In this mode, a writer locks out readers: they wait within SQLite.
  const settings = { file, chainId: CHAIN_ID, callTimeMsMax: 30_000, callGasMax: 1n };
  const thread = new ReaderThread({ settings, readHistory: () => Promise.resolve([]) });
  await thread.untilReady();
  const ask = () => thread.ask({ method: "eth_blockNumber", params: [] });
  expect(await ask()).toBe('"0x0"');
  settings.callTimeMsMax = 400; // Only now, since the first request of a thread may take long on a busy machine.
  owner.exec("BEGIN EXCLUSIVE");
  await expect(ask()).rejects.toMatchObject({ message: "execution aborted (timeout = 400ms)" });
  owner.exec("COMMIT");
  await thread.end(new Error("The test is over."));
  owner.close();
  await rm(folder, { recursive: true });
});
