const transactionGas = 21_000;
/** Floor of EIP-7623 for a byte that is not zero; before it, calldata cost 16. */
const floorGasPerByte = 40;
/** 16 for calldata, 8 for the log, and the copies on the way. */
const gasPerByte = 26;
/** Quadratic cost of memory (Yellow Paper, appendix G): the log of a batch is made in memory. */
const memoryGas = (bytes: number): number => (bytes / 32) ** 2 / 512;
/** One storage slot read and written (22,100 the first time), the set of writers, one log with its topics; measured about 14,000. */
const gasPerBatch = 28_000;
const margin = 1.1;

/** Gas that a `publish` takes at most, as EVM chains charge it today. */
export function publishGas(calldataBytes: number, batches: number): number {
  const floor = transactionGas + floorGasPerByte * calldataBytes;
  const work = transactionGas + gasPerByte * calldataBytes + memoryGas(calldataBytes) + gasPerBatch * batches;
  return Math.ceil(Math.max(floor, work) * margin);
}

/** The sender's place among the accounts, once. */
const gasFirstTopic = 70_000;
/** A proxy created, the topic's head, its place among the topics and its log; measured about 113,000. */
const gasPerTopic = 116_000;
/** A name of 32 bytes or more has a slot for each 32 bytes. */
const gasPerNameSlot = 22_500;
const nameSlotBytes = 32;

/** Gas that an `open` takes at most. */
export function openGas(names: readonly string[]): number {
  return Math.ceil(names.reduce((gas, name) => gas + openingGas(name), openingBaseGas));
}

/** What an `open` takes whatever it opens. */
export const openingBaseGas = (transactionGas + gasFirstTopic) * margin;

/** What one topic adds to that. */
export function openingGas(name: string): number {
  const bytes = Buffer.byteLength(name);
  return (gasPerTopic + floorGasPerByte * bytes + gasPerNameSlot * Math.ceil(bytes / nameSlotBytes)) * margin;
}

/** A set's owner, the number of sets and its log; measured about 30,000. */
const gasPerWriterSet = 36_000;
/** A member's slot and its log; measured about 25,000. */
const gasPerWriter = 28_000;

/** Gas that a `createWriters` takes at most, and a `setWriter`, which is less. */
export function writersGas(accounts: number): number {
  return Math.ceil((transactionGas + gasPerWriterSet + gasPerWriter * accounts) * margin);
}

/** Head room over what the endpoint estimates. */
const estimateMargin = 1.2;
/** How much dearer than the formula a chain may be. */
const factorMax = 16;

/**
 * Gas by formula: asking the endpoint would cost a round trip for each transaction, and what is not used is given back. Where a chain
 * charges more, it is asked once, and the formula is stretched for those after it.
 */
export class GasPolicy {
  #factor = 1;

  forPublish(calldataBytes: number, batches: number): number {
    return Math.ceil(publishGas(calldataBytes, batches) * this.#factor);
  }

  /** After `gas` was too little for a transaction; answers what to offer where the endpoint estimates `estimate`. */
  onShort(gas: number, estimate: number): number {
    const needed = Math.ceil(estimate * estimateMargin);
    this.#factor = Math.min(factorMax, Math.max(this.#factor, (this.#factor * needed) / gas));
    return needed;
  }
}
