import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { type EmbeddedChain, type EmbeddedChainOptions, startEmbeddedChain } from "../embedded-chain.ts";
import { CHAIN_ID, SIGNER } from "./client.ts";

/** The folder of one test, with the file of its chain. */
class ChainFolder {
  path = "";

  get file(): string {
    return join(this.path, "chain.db");
  }

  /** Starts the chain of the file, which funds `SIGNER`. */
  start(options: Partial<EmbeddedChainOptions> = {}): Promise<EmbeddedChain> {
    return startEmbeddedChain({ file: this.file, chainId: CHAIN_ID, genesisAccounts: [SIGNER.address], ...options });
  }
}

/** Makes a new folder for each test of the calling test file. */
export function useChainFolder(): ChainFolder {
  const folder = new ChainFolder();
  beforeEach(() => void (folder.path = mkdtempSync(join(tmpdir(), "stele-chain-"))));
  afterEach(() => rmSync(folder.path, { recursive: true, force: true }));
  return folder;
}
