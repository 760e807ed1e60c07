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

/** What the worker gets when it starts. */
export interface WorkerData extends WorkerSettings {
  /** The memory of its `NativeCalls`. */
  readonly nativeCalls: SharedArrayBuffer;
}

/** Blocks to read, from `from` to `to`, both included. The first is always read; reading ends early once the blocks have at least `bytesMax` bytes. */
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
  /** One reason for each damaged node or code that could not be rewritten. The check did not read below such a node. */
  readonly damaged: readonly string[];
  /** Damaged nodes and codes that were rewritten. */
  readonly repaired: number;
}

/** Result of one step of comparing the table `places` (the chain file's own index, by hash and by log) with the blocks. */
export interface CheckedIndexEntries {
  readonly isMore: boolean;
  /** Entries that this step read. */
  readonly entries: number;
  /** Whether the index differed and was rebuilt from the blocks, or unsaved entries were damaged; false until the comparison ends. */
  readonly isDamaged: boolean;
}

/** A transaction as the thread outside the worker knows it, without the chain's file. */
export interface KnownTransaction {
  readonly hash: Uint8Array;
  /** The transaction's input. */
  readonly data: Uint8Array;
  /** Parts of `data` that the transaction's logs also contain. */
  readonly logged: readonly Uint8Array[];
}

export interface RepairableBlock {
  readonly number: bigint;
  readonly transactions: readonly KnownTransaction[];
}

/** The form in which one thread sends an error to another: without its class. */
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
  | { readonly kind: "repair"; readonly id: number; readonly block: RepairableBlock }
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
  /** A block, and the ids of the submissions accepted since the last `block` or `accepted` message. */
  | { readonly kind: "block"; readonly block: Uint8Array; readonly accepted: readonly number[] }
  | { readonly kind: "accepted"; readonly accepted: readonly number[] }
  /** Answers the `blocks` message with this id: a block of the range is damaged. */
  | { readonly kind: "damage"; readonly id: number; readonly message: string }
  /** The state is damaged. Found while answering a message, which also gets an `error`, or while making a block. */
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

/** What the reader's worker gets when it starts. */
export interface ReaderData extends ReaderSettings {
  /** The memory of its `NativeCalls`. */
  readonly nativeCalls: SharedArrayBuffer;
}

/** Messages to the reader's worker. It gets one request at a time, so requests have no id. */
export type ToReader =
  | { readonly kind: "request"; readonly method: string; readonly params: unknown }
  | { readonly kind: "history"; readonly layers: readonly SharedLayer[] };

export type FromReader =
  | { readonly kind: "ready" }
  | { readonly kind: "result"; readonly json: string }
  | { readonly kind: "error"; readonly error: ErrorMessage }
  | { readonly kind: "history"; readonly after: bigint | undefined };
