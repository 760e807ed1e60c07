import { fromHex } from "@stele/eth/node";
import type { Hash } from "../../../domain/topic.ts";
import { groupBy } from "../../../lib/group-by.ts";
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
      // The order of a transaction's logs is the order of its batches in the call.
      const sorted = batches.toSorted((one, other) => one.logIndex - other.logIndex);
      const groups = groupBy(sorted, ({ transactionHash }) => transactionHash);
      const transactions = [...groups].map(([hash, own]) => toTransaction(hash, own, verifier));
      return (await provider.repairBlock?.(blockNumber, transactions)) ?? false;
    },
  };
}

function toTransaction(hash: Hash, batches: readonly AddressedBatch[], verifier: BatchVerifier): KnownTransaction {
  const encoded = batches.map((batch) => ({ ...batch, eventsRoot: verifier.rootOf(batch.events, batch.count) }));
  const logged = batches.map(({ events }) => events);
  return { hash: fromHex(hash), data: encodePublish(encoded), logged };
}
