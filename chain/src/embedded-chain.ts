import { EventEmitter } from "node:events";
import { Worker } from "node:worker_threads";
import type { Hex } from "@stele/eth/node";
import { type CommittedBlock, decodeCommittedBlock } from "./blocks/committed-block.ts";
import { ChainFileError } from "./chain-file-error.ts";
import {
  BLOCK_GAS_LIMIT_DEFAULT,
  BLOCKS_ANSWER_BYTES_MAX,
  CALL_GAS_MAX_DEFAULT,
  CALL_TIME_MS_MAX_DEFAULT,
  CHECK_INTERVAL_DEFAULT,
  CHECKED_BLOCKS_MAX,
  CHECKED_BYTES_MAX,
  READER_CALL_GAS_MAX_DEFAULT,
  STOP_TIME_MS_MAX_DEFAULT,
  TRANSACTION_BYTES_MAX_DEFAULT,
  UNSAVED_BYTES_MAX_DEFAULT,
  WORKER_YOUNG_MEBIBYTES_MAX,
} from "./limits.ts";
import type {
  CheckedBlocks,
  CheckedIndexEntries,
  CheckedState,
  FromWorker,
  KnownTransaction,
  ReaderSettings,
  StatePlace,
  ToWorker,
  WorkerData,
} from "./messages.ts";
import { NativeCalls } from "./native-calls.ts";
import type { RegistryCode } from "./execution/registry/registry-code.ts";
import { SnapshotReader } from "./reader/snapshot-reader.ts";
import { fromErrorMessage, ProviderRpcError, RPC_ERROR_CODES } from "./rpc-error.ts";
import type { SharedLayer } from "./state/state-history.ts";
import type { CloseOptions } from "./storage/open-database.ts";
import { findWorkerFile } from "./worker-file.ts";

export interface EmbeddedChainOptions {
  /** Path of the SQLite file, or ":memory:" for a chain that ends with the process. */
  readonly file: string;
  readonly chainId: number;
  /** Accounts funded in block 0. When the chain is started again, each must be one of the accounts that it was made with. */
  readonly genesisAccounts: readonly Hex[];
  readonly blockGasLimit?: bigint;
  readonly callGasMax?: bigint;
  readonly callTimeMsMax?: number;
  /** As `callGasMax`, for the reader. */
  readonly readerCallGasMax?: bigint;
  readonly transactionBytesMax?: number;
  /** EthereumJS repeats one in this many of the transactions that the chain's own code runs, and the chain compares the results. */
  readonly checkInterval?: number;
  /** The registry whose `publish` the chain executes without interpreting its instructions. */
  readonly registryCode?: RegistryCode;
  /** Maximum number of pages of 4 KiB in the file; without it, as many as the disk has. */
  readonly filePagesMax?: number;
  /** Bytes of unsaved state nodes and index entries at which the chain writes them into their tables. */
  readonly unsavedBytesMax?: number;
  /**
   * Refuses a chain with blocks if its head file is missing or damaged. Set this if nothing else can show that the chain lost its newest blocks. A whole head
   * file is always compared with the chain.
   */
  readonly needsHeadFile?: boolean;
}

export interface SubscriptionMessage {
  readonly type: "eth_subscription";
  readonly data: { readonly subscription: Hex; readonly result: unknown };
}

export interface EmbeddedChainEvents {
  /** A notification of a subscription (EIP-1193). */
  message: [message: SubscriptionMessage];
  /** Blocks cannot be written (the error says why), or can be again (undefined). The chain retries waiting transactions by itself. */
  fault: [fault: Error | undefined];
  /** The chain's own code and EthereumJS disagreed on a transaction. EthereumJS' result counts, and EthereumJS runs all later transactions. */
  mismatch: [error: Error];
  /** A block that `readBlocks` was to read, or the state, is damaged in the file; the error says how. */
  damage: [error: ChainFileError];
  /** The chain ended by itself and answers no more requests. */
  disconnect: [error: Error];
}

/** A range of blocks, `to` included. With `isOptional`, the caller can do without these blocks, so their damage does not emit the event `damage`. */
export interface BlocksWanted {
  readonly from: number;
  readonly to: number;
  readonly isOptional?: boolean;
}

/** Receives one block after another. */
export type BlockFollower = (block: CommittedBlock) => void;

interface Pending {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

type Request = Extract<ToWorker, { readonly id: number }>;
/** A request without its id. */
type Question = Request extends infer One ? (One extends Request ? Omit<One, "id"> : never) : never;

/** A chain in a worker thread, behind an EIP-1193 provider for its owner. */
export class EmbeddedChain implements AsyncDisposable {
  readonly #worker: Worker;
  readonly #nativeCalls: NativeCalls;
  readonly #events = new EventEmitter<EmbeddedChainEvents>();
  readonly #followers = new Set<BlockFollower>();
  readonly #pending = new Map<number, Pending>();
  readonly #exited: Promise<void>;
  /** Answers read-only requests of callers other than the owner, in its own thread. A chain in memory has no file to read. */
  readonly reader: SnapshotReader;
  #nextId = 1;
  #closed: Error | undefined;
  #isStopping = false;

  /** Use `startEmbeddedChain`. */
  constructor(worker: Worker, nativeCalls: NativeCalls, settings: ReaderSettings) {
    this.#worker = worker;
    this.#nativeCalls = nativeCalls;
    this.reader = new SnapshotReader({ settings, readHistory: (after) => this.#readHistory(after) });
    worker.on("message", (message: FromWorker) => this.#receive(message));
    worker.on("error", (error) =>
      this.#close(new Error(`The embedded chain failed: ${error.message}`, { cause: error })),
    );
    this.#exited = new Promise((resolve) => {
      worker.once("exit", (code) => {
        this.#close(
          new Error(
            this.#isStopping ? "The embedded chain was stopped." : `The embedded chain ended with code ${code}.`,
          ),
        );
        resolve();
      });
    });
  }

  /** Answers a request; rejects with a ProviderRpcError that has geth's code. */
  request(args: { readonly method: string; readonly params?: unknown }): Promise<unknown> {
    return this.#ask({ kind: "request", method: args.method, params: args.params });
  }

  /**
   * Adds a signed transaction to the pool, as `eth_sendRawTransaction` does, but takes bytes, and no remote client can call it. Resolves once the
   * transaction is accepted, at the latest with the message that carries its block; rejects with a ProviderRpcError that has geth's code.
   */
  async submit(raw: Uint8Array): Promise<void> {
    const copy = new Uint8Array(raw); // A copy: transferring a view would transfer all memory around it.
    await this.#ask({ kind: "submit", raw: copy }, [copy.buffer]);
  }

  /**
   * Calls `follower` with each block and its logs once the block is synced to disk: from the next block on, in order and without a gap. Returns a function that
   * ends this.
   */
  follow(follower: BlockFollower): () => void {
    if (this.#followers.size === 0 && this.#closed === undefined && !this.#isStopping) this.#post({ kind: "feed" });
    this.#followers.add(follower);
    return () => void this.#followers.delete(follower);
  }

  /**
   * Reads blocks as `follow` passes them on, and compares each with its hashes. Reads the first block, and more until the blocks amount to
   * {@link BLOCKS_ANSWER_BYTES_MAX} bytes.
   * @throws ChainFileError if a block is damaged. Unless `isOptional`, the event `damage` reports that too.
   */
  async readBlocks({ from, to, isOptional = false }: BlocksWanted): Promise<readonly CommittedBlock[]> {
    const range = { from: BigInt(from), to: BigInt(to), bytesMax: BLOCKS_ANSWER_BYTES_MAX };
    try {
      // The worker answers nothing else.
      const encoded = (await this.#ask({ kind: "blocks", range })) as readonly Uint8Array[];
      return encoded.map(decodeCommittedBlock);
    } catch (error) {
      if (error instanceof ChainFileError && !isOptional) this.#events.emit("damage", error);
      throw error;
    }
  }

  /**
   * Compares the first block of a range with its hashes, and more up to {@link CHECKED_BLOCKS_MAX} or {@link CHECKED_BYTES_MAX}. Only the result reports
   * damage.
   */
  async checkBlocks({ from, to }: { readonly from: number; readonly to: number }): Promise<CheckedBlocks> {
    const last = Math.min(to, from + CHECKED_BLOCKS_MAX - 1);
    const range = { from: BigInt(from), to: BigInt(last), bytesMax: CHECKED_BYTES_MAX };
    return (await this.#ask({ kind: "check", range })) as CheckedBlocks; // the worker answers nothing else
  }

  /** Compares the index of hashes and logs with the blocks, step by step; `isFirst` starts over. Rebuilds it if it differs, but not while the file is held. */
  async checkIndexEntries(isFirst: boolean): Promise<CheckedIndexEntries> {
    return (await this.#ask({ kind: "check-index-entries", isFirst })) as CheckedIndexEntries; // the worker answers nothing else
  }

  /** Compares nodes and codes of the newest state with their hashes, from `from` on, up to CHECKED_NODES_MAX. Only the result reports damage. */
  async checkState(from: StatePlace | undefined): Promise<CheckedState> {
    return (await this.#ask({ kind: "check-state", from })) as CheckedState; // the worker answers nothing else
  }

  /** Repairs a damaged block with what is known of its transactions, if the whole block then matches its hashes. Resolves to true if it does. */
  async repairBlock(number: number, transactions: readonly KnownTransaction[]): Promise<boolean> {
    return (await this.#ask({ kind: "repair", block: { number: BigInt(number), transactions } })) as boolean; // the worker answers nothing else
  }

  /**
   * Writes all blocks into the chain's file and leaves the file unchanged until `releaseFile`, so that it can be copied; new blocks go to the log. Resolves to
   * false, without holding the file, while a reader needs the log: then ask again. A block that was announced before this call is in the file. If this process
   * makes the copy, it must not close the file: closing would end SQLite's lock on the file (POSIX).
   */
  async holdFile(): Promise<boolean> {
    return (await this.#ask({ kind: "hold-file" })) as boolean; // the worker answers nothing else
  }

  /** Lets the chain write blocks into its file again, after `holdFile`. */
  releaseFile(): void {
    if (this.#closed === undefined && !this.#isStopping) this.#post({ kind: "release-file" });
  }

  on<Name extends keyof EmbeddedChainEvents>(
    event: Name,
    listener: (...args: EmbeddedChainEvents[Name]) => void,
  ): this {
    // The type of Node's listeners is a conditional type, which TypeScript does not resolve for a type parameter.
    this.#events.on(event, listener as never);
    return this;
  }

  removeListener<Name extends keyof EmbeddedChainEvents>(
    event: Name,
    listener: (...args: EmbeddedChainEvents[Name]) => void,
  ): this {
    this.#events.removeListener(event, listener as never); // as in `on`
    return this;
  }

  /**
   * Finishes the block in progress and closes the database. Later requests are refused. After `timeoutMs`, ends the thread as soon as it is not in a call of
   * SQLite: the block in progress is then not announced, and perhaps not written. With `keepsLog` the file and its log stay unchanged: for an owner that
   * refuses the chain, or has not yet checked it.
   */
  async stop(timeoutMs = STOP_TIME_MS_MAX_DEFAULT, { keepsLog = false }: CloseOptions = {}): Promise<void> {
    await this.reader.stop();
    if (!this.#isStopping && this.#closed === undefined) {
      this.#isStopping = true;
      this.#post({ kind: "stop", keepsLog });
    }
    const timer = setTimeout(() => this.#nativeCalls.end() && void this.#worker.terminate(), timeoutMs);
    await this.#exited;
    clearTimeout(timer);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #ask(question: Question, handedOver: readonly ArrayBuffer[] = []): Promise<unknown> {
    if (this.#closed !== undefined || this.#isStopping) return Promise.reject(this.#disconnected());
    const id = this.#nextId;
    this.#nextId += 1;
    return new Promise((resolve, reject) => {
      // postMessage throws if the question cannot be cloned; then nothing is pending.
      this.#post({ id, ...question }, handedOver);
      this.#pending.set(id, { resolve, reject });
    });
  }

  async #readHistory(after: bigint | undefined): Promise<readonly SharedLayer[]> {
    return (await this.#ask({ kind: "history", after })) as readonly SharedLayer[]; // the worker answers nothing else
  }

  #post(message: ToWorker, handedOver: readonly ArrayBuffer[] = []): void {
    this.#worker.postMessage(message, handedOver);
  }

  #receive(message: FromWorker): void {
    switch (message.kind) {
      case "result":
        return this.#take(message.id)?.resolve(message.result);
      case "error":
        return this.#take(message.id)?.reject(fromErrorMessage(message.error));
      case "accepted":
        return this.#accept(message.accepted);
      case "block":
        this.#accept(message.accepted);
        return this.#handOver(message.block);
      case "damage":
        return this.#reportDamage(message);
      case "state-damage":
        this.#events.emit("damage", new ChainFileError(message.message));
        return;
      case "notification": {
        const { subscription, result } = message;
        this.#events.emit("message", { type: "eth_subscription", data: { subscription, result } });
        return;
      }
      case "fault":
        this.#events.emit("fault", message.message === undefined ? undefined : new Error(message.message));
        return;
      case "mismatch":
        this.#events.emit("mismatch", new Error(message.message));
        return;
      case "ready":
      case "refused":
        return;
    }
  }

  #handOver(encoded: Uint8Array): void {
    const block = decodeCommittedBlock(encoded);
    for (const follower of this.#followers) follower(block);
  }

  #accept(ids: readonly number[]): void {
    for (const id of ids) this.#take(id)?.resolve(undefined);
  }

  #reportDamage({ id, message }: Extract<FromWorker, { kind: "damage" }>): void {
    this.#take(id)?.reject(new ChainFileError(message));
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }

  #close(error: Error): void {
    if (this.#closed !== undefined) return;
    this.#closed = error;
    for (const { reject } of this.#pending.values()) reject(this.#disconnected());
    this.#pending.clear();
    if (!this.#isStopping) this.#events.emit("disconnect", error);
  }

  #disconnected(): ProviderRpcError {
    const message = this.#closed?.message ?? "The embedded chain is stopping.";
    return new ProviderRpcError(RPC_ERROR_CODES.disconnected, message, { cause: this.#closed });
  }
}

/** Starts a chain on its file, or makes a new one there. @throws ChainFileError if the file cannot be used. */
export async function startEmbeddedChain(options: EmbeddedChainOptions): Promise<EmbeddedChain> {
  const nativeCalls = new NativeCalls();
  const workerData: WorkerData = {
    nativeCalls: nativeCalls.memory,
    file: options.file,
    chainId: options.chainId,
    genesisAccounts: options.genesisAccounts,
    blockGasLimit: options.blockGasLimit ?? BLOCK_GAS_LIMIT_DEFAULT,
    callGasMax: options.callGasMax ?? CALL_GAS_MAX_DEFAULT,
    callTimeMsMax: options.callTimeMsMax ?? CALL_TIME_MS_MAX_DEFAULT,
    transactionBytesMax: options.transactionBytesMax ?? TRANSACTION_BYTES_MAX_DEFAULT,
    checkInterval: options.checkInterval ?? CHECK_INTERVAL_DEFAULT,
    registryCode: options.registryCode,
    filePagesMax: options.filePagesMax,
    unsavedBytesMax: options.unsavedBytesMax ?? UNSAVED_BYTES_MAX_DEFAULT,
    needsHeadFile: options.needsHeadFile ?? false,
  };
  const worker = new Worker(findWorkerFile("worker"), {
    workerData,
    resourceLimits: { maxYoungGenerationSizeMb: WORKER_YOUNG_MEBIBYTES_MAX },
  });
  nativeCalls.watch(worker);
  await untilReady(worker);
  const { file, chainId, callTimeMsMax } = workerData;
  const callGasMax = options.readerCallGasMax ?? READER_CALL_GAS_MAX_DEFAULT;
  return new EmbeddedChain(worker, nativeCalls, { file, chainId, callTimeMsMax, callGasMax });
}

function untilReady(worker: Worker): Promise<void> {
  return new Promise((resolve, reject) => {
    const ended = (): void => reject(new Error("The embedded chain ended while it started."));
    worker.once("error", reject).once("exit", ended);
    worker.once("message", (message: FromWorker) => {
      worker.off("error", reject).off("exit", ended);
      if (message.kind === "refused") reject(new ChainFileError(message.message));
      else resolve();
    });
  });
}
