/**
 * If an endpoint answers one of these methods with an error, the next endpoint is asked: the first may have pruned the data, lack the state of its newest block,
 * or refuse the size. Even a revert may be true only of an endpoint that lags.
 */
export const methodsForNext: ReadonlySet<string> = new Set([
  "eth_call",
  "eth_estimateGas",
  "eth_getBalance",
  "eth_getBlockByNumber",
  "eth_getBlockReceipts",
  "eth_getCode",
  "eth_getLogs",
  "eth_getStorageAt",
  "eth_getTransactionByHash",
  "eth_getTransactionCount",
  "eth_getTransactionReceipt",
]);
