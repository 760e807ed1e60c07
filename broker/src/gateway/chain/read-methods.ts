/**
 * What a method costs. The time of a look-up grows with its answer. A computation runs code or searches blocks, until the chain's time limit for
 * a call.
 */
export type Cost = "look-up" | "computation";

/**
 * The methods that clients may call. Leaves out methods that send or sign. Also leaves out filters and subscriptions: the chain would have to keep them for
 * unknown callers, and one caller could displace those of others. Libraries poll `eth_getLogs` instead.
 */
export const readMethods: ReadonlyMap<string, Cost> = new Map<string, Cost>([
  ["eth_accounts", "look-up"],
  ["eth_blobBaseFee", "look-up"],
  ["eth_blockNumber", "look-up"],
  ["eth_call", "computation"],
  ["eth_chainId", "look-up"],
  ["eth_coinbase", "look-up"],
  ["eth_estimateGas", "computation"],
  ["eth_feeHistory", "computation"],
  ["eth_gasPrice", "look-up"],
  ["eth_getBalance", "look-up"],
  ["eth_getBlockByHash", "look-up"],
  ["eth_getBlockByNumber", "look-up"],
  ["eth_getBlockReceipts", "computation"],
  ["eth_getBlockTransactionCountByHash", "look-up"],
  ["eth_getBlockTransactionCountByNumber", "look-up"],
  ["eth_getCode", "look-up"],
  ["eth_getLogs", "computation"],
  ["eth_getProof", "computation"],
  ["eth_getStorageAt", "look-up"],
  ["eth_getTransactionByBlockHashAndIndex", "look-up"],
  ["eth_getTransactionByBlockNumberAndIndex", "look-up"],
  ["eth_getTransactionByHash", "look-up"],
  ["eth_getTransactionCount", "look-up"],
  ["eth_getTransactionReceipt", "look-up"],
  ["eth_getUncleCountByBlockHash", "look-up"],
  ["eth_getUncleCountByBlockNumber", "look-up"],
  ["eth_maxPriorityFeePerGas", "look-up"],
  ["eth_mining", "look-up"],
  ["eth_syncing", "look-up"],
  ["net_listening", "look-up"],
  ["net_peerCount", "look-up"],
  ["net_version", "look-up"],
  ["web3_clientVersion", "look-up"],
  ["web3_sha3", "look-up"],
]);
