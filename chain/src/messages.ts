import type { Hex } from "@stele/eth/node";
import type { RegistryCode } from "./execution/registry/registry-code.ts";
import type { SharedLayer } from "./state/state-history.ts";

/** Settings that the worker starts with. */
export interface WorkerSettings {
  readonly file: string;
  readonly chainId: number;
  readonly genesisAccounts: readonly Hex[];
  readonly blockGasLimit: bigint;
  readonly callGasMax: bigint;
  readonly callTimeMsMax: number;
  readonly transactionBytesMax: number;
  readonly checkInterval: number;
  readonly registryCode: RegistryCode | undefined;
  readonly filePagesMax: number | undefined;
  readonly unsavedBytesMax: number;
  readonly needsHeadFile: boolean;
}

/** Blocks to read, `to` included: the first, and more until they amount to `bytesMax` bytes. */
export interface BlockRange {
  readonly from: bigint;
  readonly to: bigint;
  readonly bytesMax: number;
}

/** A block that does not match its hashes, or cannot be read. */
export interface DamagedBlock {
  readonly number: number;
  readonly reason: string;
}

export interface CheckedBlocks {
  /** The last block that was checked. */
  readonly upTo: number;
  readonly damaged: readonly DamagedBlock[];
}

/** A place in the state: paths of nibbles as latin1, in the trie of accounts and in the storage of that account. */
export interface StatePlace {
  readonly account: string;
  readonly slot: string;
}

export interface CheckedState {
  /** Where the next check continues; undefined at the end of the state. */
  readonly next: StatePlace | undefined;
  /** Nodes and codes that were read. */
  readonly nodes: number;
  /** One reason for each damaged node or code. The check did not read below a damaged node. */
  readonly damaged: readonly string[];
  /** Damaged nodes and codes that were rewritten. */
  readonly mended: number;
}

/** Progress of a comparison of the index of hashes and logs with the blocks. */
export interface CheckedIndexEntries {
  readonly isMore: boolean;
  /** Entries that this step read. */
  readonly entries: number;
  /** Whether the index differed and was rebuilt from the blocks; false until the comparison ends. */
  readonly isDamaged: boolean;
}

/** What the owner knows of a transaction from another source than the chain. */
export interface KnownTransaction {
  readonly hash: Uint8Array;
  /** The transaction's input. */
  readonly data: Uint8Array;
  /** Parts of the data that its logs repeat. */
  readonly logged: readonly Uint8Array[];
}

export interface BlockMending {
  readonly number: bigint;
  readonly transactions: readonly KnownTransaction[];
}

/** An error as a message between threads carries it, without its class. */
export interface ErrorMessage {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

export type ToWorker =
  | { readonly kind: "request"; readonly id: number; readonly method: string; readonly params: unknown }
  | { readonly kind: "history"; readonly id: number; readonly after: bigint | undefined }
  | { readonly kind: "submit"; readonly id: number; readonly raw: Uint8Array }
  | { readonly kind: "blocks"; readonly id: number; readonly range: BlockRange }
  | { readonly kind: "check"; readonly id: number; readonly range: BlockRange }
  | { readonly kind: "check-index-entries"; readonly id: number; readonly isFirst: boolean }
  | { readonly kind: "mend"; readonly id: number; readonly mending: BlockMending }
  | { readonly kind: "check-state"; readonly id: number; readonly from: StatePlace | undefined }
  | { readonly kind: "hold-file"; readonly id: number }
  | { readonly kind: "release-file" }
  | { readonly kind: "feed" }
  | { readonly kind: "stop"; readonly keepsLog: boolean };

export type FromWorker =
  | { readonly kind: "ready" }
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "result"; readonly id: number; readonly result: unknown }
  | { readonly kind: "error"; readonly id: number; readonly error: ErrorMessage }
  /** A block, and the submissions that were accepted since the last message of this kind. */
  | { readonly kind: "block"; readonly block: Uint8Array; readonly accepted: readonly number[] }
  | { readonly kind: "accepted"; readonly accepted: readonly number[] }
  /** A block that was to be read is damaged. Answers the request with this id. */
  | { readonly kind: "damage"; readonly id: number; readonly message: string }
  /** The state is damaged: a request met the damage, and gets an error too, or the next block did. */
  | { readonly kind: "state-damage"; readonly message: string }
  | { readonly kind: "notification"; readonly subscription: Hex; readonly result: unknown }
  | { readonly kind: "fault"; readonly message: string | undefined }
  | { readonly kind: "mismatch"; readonly message: string };

/** Settings that the reader's worker starts with. */
export interface ReaderSettings {
  readonly file: string;
  readonly chainId: number;
  readonly callGasMax: bigint;
  readonly callTimeMsMax: number;
}

/** The reader's worker gets one request at a time. */
export type ToReader =
  | { readonly kind: "request"; readonly method: string; readonly params: unknown }
  | { readonly kind: "history"; readonly layers: readonly SharedLayer[] };

export type FromReader =
  | { readonly kind: "ready" }
  | { readonly kind: "result"; readonly json: string }
  | { readonly kind: "error"; readonly error: ErrorMessage }
  | { readonly kind: "history"; readonly after: bigint | undefined };
