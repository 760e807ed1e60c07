const transactionGas = 21_000;
/** Floor of EIP-7623 for a byte that is not zero; before it, calldata cost 16. */
const floorGasPerByte = 40;
/** 16 for calldata, 8 for the log, and the copies on the way. */
const gasPerByte = 26;
/** Quadratic cost of memory (Yellow Paper, appendix G), in three places: proxy, topic and log. */
const memoryGas = (bytes: number): number => 3 * ((bytes / 32) ** 2 / 512);
/** Calls into proxy and topic, one storage slot, one log with its topics; measured about 21,000. */
const gasPerBatch = 40_000;
const margin = 1.1;

/** Gas that a `publish` takes at most, as EVM chains charge it today. */
export function publishGas(calldataBytes: number, batches: number): number {
  const floor = transactionGas + floorGasPerByte * calldataBytes;
  const work = transactionGas + gasPerByte * calldataBytes + memoryGas(calldataBytes) + gasPerBatch * batches;
  return Math.ceil(Math.max(floor, work) * margin);
}

const raiseFactor = 1.5;
/** Times that the formula is raised by half on a chain that charges more. */
const raisesMax = 5;
/** A call passes on 63 of 64 parts of its gas, so a transaction that ran out of it has used about all. */
const usedUp = 0.95;

/**
 * Gas by formula: asking the endpoint would cost a round trip for each transaction, and what is not used is given back. On a chain that
 * charges more, a transaction runs out of gas, and those after it get more.
 */
export class GasPolicy {
  #raises = 0;

  forPublish(calldataBytes: number, batches: number): number {
    return Math.ceil(publishGas(calldataBytes, batches) * raiseFactor ** this.#raises);
  }

  onReverted(gas: number, gasUsed: number): void {
    if (gasUsed >= gas * usedUp) this.#raises = Math.min(this.#raises + 1, raisesMax);
  }
}
