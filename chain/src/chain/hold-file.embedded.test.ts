import { once } from "node:events";
import { setImmediate } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { DatabaseSync } from "@photostructure/sqlite";
import { hexToBytes } from "viem";
import { expect, it } from "vitest";
import { useChainFolder } from "../testing/chain-folder.ts";
import { CHAIN_ID, FEES, PAUPER, SIGNER } from "../testing/client.ts";
import { mayWrite } from "../testing/may-write.ts";

const folder = useChainFolder();

/** Another program's checkpoint, which waits for readers. */
const program = `
  const { DatabaseSync } = require("@photostructure/sqlite");
  const database = new DatabaseSync(require("node:worker_threads").workerData);
  database.exec("PRAGMA busy_timeout = 60000; PRAGMA wal_checkpoint(RESTART)");
  database.close();
`;

it("holdFile holds nothing while another program copies the log into the file, and holds the file after that", async () => {
  const { file } = folder;
  const chain = await folder.start();
  const reader = new DatabaseSync(file);
  reader.exec("BEGIN; SELECT count(*) FROM blocks");
  const fields = { type: "eip1559", chainId: CHAIN_ID, ...FEES, gas: 21_000n, nonce: 0, value: 1n } as const;
  await chain.submit(hexToBytes(await SIGNER.signTransaction({ ...fields, to: PAUPER.address })));
  const other = new Worker(program, { eval: true, workerData: file });
  const exited = once(other, "exit");
  const writer = new DatabaseSync(file);
  while (mayWrite(writer)) await setImmediate(); // until the other program has its locks
  expect(await chain.holdFile()).toBe(false);
  reader.exec("COMMIT");
  await exited;
  expect(await chain.holdFile()).toBe(true);
  await chain.stop();
  for (const database of [reader, writer]) database.close();
});
