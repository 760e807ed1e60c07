const transactionGas = 21_000;
/** Least gas per byte of calldata, by EIP-7623 for a non-zero byte. */
const floorGasPerByte = 40;
/** Gas per byte of calldata: 16 for calldata, 8 for the log, the rest for copies. */
const gasPerByte = 26;
/** Quadratic part of the gas of memory (Yellow Paper, appendix G): the contract builds the log of a batch in memory. */
const memoryGas = (bytes: number): number => (bytes / 32) ** 2 / 512;
/** Gas per batch: one storage slot read and written (22,100 the first time), the set of writers, one log with its topics; measured about 14,000. */
const gasPerBatch = 28_000;
const margin = 1.1;

/** Upper bound on the gas of a `publish`, by today's EVM prices. */
export function publishGas(calldataBytes: number, batches: number): number {
  const floor = transactionGas + floorGasPerByte * calldataBytes;
  const work = transactionGas + gasPerByte * calldataBytes + memoryGas(calldataBytes) + gasPerBatch * batches;
  return Math.ceil(Math.max(floor, work) * margin);
}

/** Gas of the sender's first entry in the registry, once per account. */
const gasFirstTopic = 70_000;
/** Gas per topic: creating a proxy, writing the topic's head and its entry in the list, and one log; measured about 113,000. */
const gasPerTopic = 116_000;
/** Gas per storage slot of a name: a name of 32 bytes or more takes one slot per 32 bytes. */
const gasPerNameSlot = 22_500;
const nameSlotBytes = 32;

/** Upper bound on the gas of an `open`. */
export function openGas(names: readonly string[]): number {
  return Math.ceil(names.reduce((gas, name) => gas + openingGas(name), openingBaseGas));
}

/** Gas of an `open` without its topics. */
export const openingBaseGas = (transactionGas + gasFirstTopic) * margin;

/** Gas that one topic adds. */
export function openingGas(name: string): number {
  const bytes = Buffer.byteLength(name);
  return (gasPerTopic + floorGasPerByte * bytes + gasPerNameSlot * Math.ceil(bytes / nameSlotBytes)) * margin;
}

/** Gas per set of writers: its owner, the number of sets and its log; measured about 30,000. */
const gasPerWriterSet = 36_000;
/** Gas per member of a set: the member's slot and its log; measured about 25,000. */
const gasPerWriter = 28_000;

/** Upper bound on the gas of a `createWriters`; a `setWriter` takes less. */
export function writersGas(accounts: number): number {
  return Math.ceil((transactionGas + gasPerWriterSet + gasPerWriter * accounts) * margin);
}

/** Margin over the endpoint's estimate. */
const estimateMargin = 1.2;
/** Upper bound on the factor by which a chain charges more gas than the formula. */
const factorMax = 16;

/**
 * Gas by formula: an estimate would cost a round trip per transaction, and the chain refunds unused gas. If a chain charges more than the
 * formula, the ledger asks for one estimate and scales the formula for later transactions.
 */
export class GasPolicy {
  #factor = 1;

  /** By how much the gas of a publish exceeds the formula. */
  get factor(): number {
    return this.#factor;
  }

  /** `gas` of a publish, and `formulaGas` without the factor. `opened` are the topics that the same transaction opens. */
  forPublish(
    calldataBytes: number,
    batches: number,
    opened: readonly string[] = [],
  ): { readonly gas: number; readonly formulaGas: number } {
    const formulaGas = publishGas(calldataBytes, batches) + (opened.length === 0 ? 0 : openGas(opened));
    return { gas: Math.ceil(formulaGas * this.#factor), formulaGas };
  }

  /**
   * Call it when a transaction had too little gas and the endpoint estimated `estimate`; returns the gas for the next attempt. Only publishes have
   * `formulaGas`, so only they raise the factor. Publishes that were sent together show the same shortage, which raises the factor only once.
   */
  onShort(estimate: number, formulaGas: number | undefined): number {
    const needed = Math.ceil(estimate * estimateMargin);
    if (formulaGas !== undefined) this.#factor = Math.min(factorMax, Math.max(this.#factor, needed / formulaGas));
    return needed;
  }
}
