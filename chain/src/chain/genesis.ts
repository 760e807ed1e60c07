import { Account, Address } from "@ethereumjs/util";
import { bloomBytes, emptyTrieRoot, fromHex, type Hex, keccak256 } from "@stele/eth/node";
import type { Block } from "../blocks/block.ts";
import { encodeHeader, type Header, ZERO_HASH } from "../blocks/header.ts";
import { BASE_FEE_PER_GAS, GENESIS_BALANCE } from "../limits.ts";
import { ExecutionState } from "../state/execution-state.ts";
import type { AppliedChanges } from "../state/node-store.ts";
import { sealState } from "../state/seal-state.ts";
import type { StateView } from "../state/state-view.ts";
import type { BlockCommit } from "../storage/chain-database.ts";

export interface GenesisOptions {
  readonly accounts: readonly Hex[];
  readonly gasLimit: bigint;
}

/** Block 0: the funded accounts and nothing else, at time 0, so that the same accounts and gas limit always give the same hash. */
export async function createGenesis(view: StateView, options: GenesisOptions): Promise<BlockCommit & AppliedChanges> {
  const state = new ExecutionState(view);
  for (const account of options.accounts) {
    await state.putAccount(new Address(fromHex(account)), new Account(0n, GENESIS_BALANCE));
  }
  const changes = state.changes();
  const { root, nodes, overwritten } = sealState(view, changes);
  const header: Header = {
    parentHash: ZERO_HASH,
    stateRoot: root,
    transactionsRoot: emptyTrieRoot,
    receiptsRoot: emptyTrieRoot,
    logsBloom: new Uint8Array(bloomBytes),
    number: 0n,
    gasLimit: options.gasLimit,
    gasUsed: 0n,
    timestamp: 0n,
    baseFeePerGas: BASE_FEE_PER_GAS,
  };
  const block: Block = { header, hash: keccak256(encodeHeader(header)), executed: [] };
  return { block, root, nodes, overwritten, storage: changes.storage, codes: [] };
}
