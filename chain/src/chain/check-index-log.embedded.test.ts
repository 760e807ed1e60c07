import { statSync } from "node:fs";
import { fromHex, Signer, signTransaction } from "@stele/eth/node";
import { DatabaseSync } from "@photostructure/sqlite";
import { getContractAddress } from "viem";
import { expect, it } from "vitest";
import { startEmbeddedChain } from "../embedded-chain.ts";
import { LOG_BYTES_MAX } from "../limits.ts";
import { useChainFolder } from "../testing/chain-folder.ts";
import { CHAIN_ID, FEES } from "../testing/client.ts";

const folder = useChainFolder();
const signer = new Signer(new Uint8Array(32).fill(9));
/** Creation code of a contract that logs 28 topics at each call, each topic different in each block: a loop that counts down, with NUMBER, SHL, OR and LOG1. */
const LOGGER = fromHex("0x60158060095f395ff3601c5b804360101b175f5fa1600190038060025700");
const contract = getContractAddress({ from: signer.address, nonce: 0n });
/** A rebuild of the index entries of this many blocks writes twice as much as the log may hold. */
const blocksTotal = 1_000;
/** Bytes that one step may add to a log that is not full yet. */
const stepBytesMax = 2 ** 20;

it("a rebuild of the index copies the write-ahead log into the file as it goes, although the chain makes no blocks", async () => {
  const { file } = folder;
  const unsavedBytesMax = 65_536; // Committing each save would take longer than making the blocks.
  const start = () =>
    startEmbeddedChain({ file, chainId: CHAIN_ID, genesisAccounts: [signer.address], unsavedBytesMax });
  {
    await using chain = await start();
    const fields = { chainId: CHAIN_ID, fees: { kind: "eip1559", ...FEES } as const, gas: 10_000_000 };
    for (let nonce = 0; nonce <= blocksTotal; nonce += 1) {
      const call = nonce === 0 ? { to: undefined, data: LOGGER } : { to: contract, data: new Uint8Array(0) };
      await chain.submit(signTransaction({ ...fields, ...call, nonce }, signer).raw);
    }
    await expect
      .poll(() => chain.request({ method: "eth_getTransactionCount", params: [signer.address, "latest"] }))
      .toBe(`0x${(blocksTotal + 1).toString(16)}`);
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
