import type { Hex } from "@stele/eth/node";
import type { RegistryCode } from "./execution/registry/registry-code.ts";
import type { SharedLayer } from "./state/state-history.ts";

/** What the worker is started with. */
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

/** Which blocks to read: from one to another, as many as have `bytesMax` bytes, and the first in any case. */
export interface BlockRange {
  readonly from: bigint;
  readonly to: bigint;
  readonly bytesMax: number;
}

/** A block that is not what its hashes say, or cannot be read. */
export interface DamagedBlock {
  readonly number: number;
  readonly reason: string;
}

export interface CheckedBlocks {
  /** The last block that was looked at. */
  readonly upTo: number;
  readonly damaged: readonly DamagedBlock[];
}

/** A place in the state: paths of nibbles as latin1, in the trie of accounts and in the storage of that account. */
export interface StatePlace {
  readonly account: string;
  readonly slot: string;
}

export interface CheckedState {
  /** Where the next check goes on; undefined at the end of the state. */
  readonly next: StatePlace | undefined;
  /** Nodes and codes that were read. */
  readonly nodes: number;
  /** Why nodes and codes are damaged, one each. What they lead to was not read. */
  readonly damaged: readonly string[];
  /** Nodes and codes that were damaged and are written again. */
  readonly mended: number;
}

/** How far a comparison of the index of hashes and logs with the blocks is. */
export interface CheckedPlaces {
  readonly isMore: boolean;
  /** Entries that this step looked at. */
  readonly entries: number;
  /** Whether the index differed, and was derived anew from the blocks. Known at the end. */
  readonly isDamaged: boolean;
}

/** What is known of a transaction from another place than the chain. */
export interface KnownTransaction {
  readonly hash: Uint8Array;
  /** What it called with. */
  readonly data: Uint8Array;
  /** Parts of the data that its logs repeat. */
  readonly logged: readonly Uint8Array[];
}

export interface BlockMending {
  readonly number: bigint;
  readonly transactions: readonly KnownTransaction[];
}

/** An error on its way between threads, where classes are lost. */
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
  | { readonly kind: "check-places"; readonly id: number; readonly isFirst: boolean }
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
  /** A block that was to be read is damaged. */
  | { readonly kind: "damage"; readonly id: number; readonly message: string }
  /** The state is damaged: for a request, which gets an error too, or for the next block. */
  | { readonly kind: "state-damage"; readonly message: string }
  | { readonly kind: "notification"; readonly subscription: Hex; readonly result: unknown }
  | { readonly kind: "fault"; readonly message: string | undefined }
  | { readonly kind: "mismatch"; readonly message: string };

/** What the reader's worker is started with. */
export interface ReaderSettings {
  readonly file: string;
  readonly chainId: number;
  readonly callGasMax: bigint;
  readonly callTimeMsMax: number;
}

/** The reader's worker is given one request after another. */
export type ToReader =
  | { readonly kind: "request"; readonly method: string; readonly params: unknown }
  | { readonly kind: "history"; readonly layers: readonly SharedLayer[] };

export type FromReader =
  | { readonly kind: "ready" }
  | { readonly kind: "result"; readonly json: string }
  | { readonly kind: "error"; readonly error: ErrorMessage }
  | { readonly kind: "history"; readonly after: bigint | undefined };
