import { statSync } from "node:fs";
import { Signer, signTransaction } from "@stele/eth/node";
import { DatabaseSync } from "@photostructure/sqlite";
import { expect, it } from "vitest";
import { startEmbeddedChain } from "../embedded-chain.ts";
import { LOG_BYTES_MAX } from "../limits.ts";
import { useChainFolder } from "../testing/chain-folder.ts";
import { CHAIN_ID, FEES } from "../testing/client.ts";

const folder = useChainFolder();
const signer = new Signer(new Uint8Array(32).fill(9));
const blocksTotal = 4_000;
/** Bytes that one step may add to a log that is not full yet. */
const stepBytesMax = 2 ** 20;

it("a rebuild of the index copies the write-ahead log into the file as it goes, although the chain makes no blocks", async () => {
  const { file } = folder;
  const start = () =>
    startEmbeddedChain({ file, chainId: CHAIN_ID, genesisAccounts: [signer.address], unsavedBytesMax: 1 });
  {
    await using chain = await start();
    const fields = {
      chainId: CHAIN_ID,
      fees: { kind: "eip1559", ...FEES } as const,
      gas: 21_000,
      to: signer.address,
      data: new Uint8Array(0),
    };
    for (let nonce = 0; nonce < blocksTotal; nonce += 1)
      await chain.submit(signTransaction({ ...fields, nonce }, signer).raw);
    await expect
      .poll(() => chain.request({ method: "eth_getTransactionCount", params: [signer.address, "latest"] }), {
        timeout: 10_000,
      })
      .toBe(`0x${blocksTotal.toString(16)}`);
  }
  const sqlite = new DatabaseSync(file);
  sqlite.exec("DELETE FROM places");
  sqlite.close();
  await using chain = await start();
  let longest = 0;
  for (let step = await chain.checkIndexEntries(true); step.isMore; step = await chain.checkIndexEntries(false)) {
    longest = Math.max(longest, statSync(`${file}-wal`).size);
  }
  expect(longest).toBeLessThan(LOG_BYTES_MAX + stepBytesMax);
});
