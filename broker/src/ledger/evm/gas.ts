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

/** Gas for a `publish`; what is not used is given back, so it errs upward. A question to the endpoint would cost a round trip each. */
export function publishGas(calldataBytes: number, batches: number): number {
  const floor = transactionGas + floorGasPerByte * calldataBytes;
  const work = transactionGas + gasPerByte * calldataBytes + memoryGas(calldataBytes) + gasPerBatch * batches;
  return Math.ceil(Math.max(floor, work) * margin);
}
