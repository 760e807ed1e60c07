export {
  EmbeddedChain,
  type EmbeddedChainEvents,
  type EmbeddedChainOptions,
  startEmbeddedChain,
  type SubscriptionMessage,
} from "./embedded-chain.ts";
export type { RegistryCode } from "./execution/registry/registry-code.ts";
export * from "./limits.ts";
export type { SnapshotReader } from "./reader/snapshot-reader.ts";
export { ProviderRpcError, RPC_ERROR_CODES } from "./rpc-error.ts";
export type { CommittedBlock, CommittedTransaction } from "./blocks/committed-block.ts";
export type { CommittedLog } from "./blocks/committed-receipt.ts";
export type { Header } from "./blocks/header.ts";
export type { Log } from "./blocks/log.ts";
export { ChainFileError } from "./chain-file-error.ts";
export { headFileOf, readHeadFile } from "./storage/head-file.ts";
