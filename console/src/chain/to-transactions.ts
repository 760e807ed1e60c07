interface Placed {
  readonly transactionHash: string;
  readonly publisher: string;
}

export interface Transaction<Batch> {
  readonly hash: string;
  readonly publisher: string;
  readonly batches: readonly Batch[];
}

/** Groups the batches of a block by the transaction that committed them, in the order of the chain. */
export function toTransactions<Batch extends Placed>(batches: readonly Batch[]): readonly Transaction<Batch>[] {
  const byHash = new Map<string, Batch[]>();
  for (const batch of batches) {
    const known = byHash.get(batch.transactionHash);
    if (known === undefined) byHash.set(batch.transactionHash, [batch]);
    else known.push(batch);
  }
  return [...byHash].map(([hash, own]) => ({ hash, publisher: own[0]?.publisher ?? "", batches: own }));
}
