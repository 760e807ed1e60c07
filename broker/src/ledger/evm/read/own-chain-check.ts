import { fromHex } from "@stele/eth/node";
import type { AddressedBatch, ChainCheck } from "../../../ports/chain-check.ts";
import type { EvmProvider, KnownTransaction } from "../endpoint/rpc.ts";
import { encodePublish } from "../write/publish-calldata.ts";
import type { BatchVerifier } from "./batch-verifier.ts";

interface OwnChainCheckOptions {
  readonly provider: EvmProvider;
  readonly verifier: BatchVerifier;
  /** The newest known block. */
  readonly head: () => number;
}

/** The integrity check of the embedded chain; undefined for other chains. */
export function createChainCheck({ provider, verifier, head }: OwnChainCheckOptions): ChainCheck | undefined {
  const checkState = provider.checkState?.bind(provider);
  const checkIndexEntries = provider.checkIndexEntries?.bind(provider);
  if (checkState === undefined || checkIndexEntries === undefined) return undefined;
  return {
    check: async (from) => (from > head() ? undefined : provider.checkBlocks?.({ from, to: head() })),
    checkIndexEntries,
    checkState,
    repair: async (blockNumber, batches) => {
      const transactions = groupByTransaction(batches).map((own) => toTransaction(own, verifier));
      return (await provider.repairBlock?.(blockNumber, transactions)) ?? false;
    },
  };
}

type Batches = [AddressedBatch, ...AddressedBatch[]];

function toTransaction(batches: Batches, verifier: BatchVerifier): KnownTransaction {
  const encoded = batches.map((batch) => ({ ...batch, eventsRoot: verifier.rootOf(batch.events, batch.count) }));
  const logged = batches.map(({ events }) => events);
  return { hash: fromHex(batches[0].transactionHash), data: encodePublish(encoded), logged };
}

/** Groups batches by transaction, in the order of their logs, which is their order in the call. */
function groupByTransaction(batches: readonly AddressedBatch[]): readonly Batches[] {
  const groups = new Map<string, Batches>();
  for (const batch of batches.toSorted((one, other) => one.logIndex - other.logIndex)) {
    const group = groups.get(batch.transactionHash);
    if (group === undefined) groups.set(batch.transactionHash, [batch]);
    else group.push(batch);
  }
  return [...groups.values()];
}
