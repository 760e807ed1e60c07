import { fromHex, type Hex, toHex } from "@stele/eth/node";
import type { Block, BlockHead } from "../blocks/block.ts";
import { parseTransaction, type Transaction } from "../blocks/transaction.ts";
import { ChainDamagedError } from "../chain-damaged-error.ts";
import { createChainEvm } from "../execution/evm.ts";
import { Executor } from "../execution/executor.ts";
import type { RegistryCode } from "../execution/registry/registry-code.ts";
import { BASE_FEE_PER_GAS, CHECKED_NODES_MAX, COMMIT_RETRY_MS, LOG_BYTES_MAX } from "../limits.ts";
import type {
  RepairableBlock,
  BlockRange,
  CheckedBlocks,
  CheckedIndexEntries,
  CheckedState,
  StatePlace,
} from "../messages.ts";
import { admit, checkFunds } from "../pool/admit.ts";
import { Pool } from "../pool/pool.ts";
import { serverError } from "../rpc-error.ts";
import { CheckedSource } from "../state/checked-source.ts";
import { ExecutionState } from "../state/execution-state.ts";
import { NodeStore } from "../state/node-store.ts";
import type { StateView } from "../state/state-view.ts";
import type { ChainDatabase } from "../storage/chain-database.ts";
import type { CloseOptions } from "../storage/open-database.ts";
import { isTransientFault } from "../storage/transient-fault.ts";
import type { Place } from "../storage/places.ts";
import { BlockClock } from "./block-clock.ts";
import { BlockReader } from "./block-reader.ts";
import { checkBlocks } from "./check-blocks.ts";
import { checkIndexEntries } from "./check-index-entries.ts";
import { checkState } from "./check-state.ts";
import { createGenesis } from "./genesis.ts";
import { repairBlock } from "./repair-block.ts";
import type { ReadableChain, ReadOptions } from "./readable-chain.ts";
import { Sealer } from "./sealer.ts";
import { readVerifiedBlocks } from "./verified-blocks.ts";

export interface ChainOptions extends ReadOptions {
  readonly genesisAccounts: readonly Hex[];
  readonly blockGasLimit: bigint;
  readonly transactionBytesMax: number;
  readonly checkInterval: number;
  readonly registryCode: RegistryCode | undefined;
  readonly unsavedBytesMax: number;
}

export interface ChainListener {
  /** A block is synced to disk; `receipts` are encoded as its receipts trie holds them. */
  blockSealed(block: Block, receipts: readonly Uint8Array[]): void;
  /** An attempt to make a block ended, whether it made one or not. */
  sealingEnded(): void;
  transactionPooled(transaction: Transaction): void;
  /** Says why a block cannot be written; undefined once blocks are written again. */
  faultChanged(fault: Error | undefined): void;
  /** The chain's own code and EthereumJS disagreed on a transaction. */
  mismatchFound(error: Error): void;
  /** The state in the file is damaged, so no block can be made. */
  damageFound(error: ChainDamagedError): void;
}

/** The chain itself: accepts transactions, makes one block after another of them, and knows the newest block. */
export class Chain implements ReadableChain {
  readonly options: ChainOptions;
  readonly blocks: BlockReader;
  readonly nodes: NodeStore;
  readonly pool: Pool;
  /** The running comparison of the index of hashes and logs with the blocks. */
  #indexCheck: ReturnType<typeof checkIndexEntries> | undefined;
  readonly #database: ChainDatabase;
  readonly #sealer: Sealer;
  readonly #listener: ChainListener;
  readonly #clock = new BlockClock();
  #head: BlockHead;
  #sealing: Promise<void> | undefined;
  #fault: Error | undefined;
  #retry: NodeJS.Timeout | undefined;
  #isStopping = false;
  /** Bytes of the write-ahead log at which the next checkpoint is due. A killed process leaves a log of any length, so a checkpoint follows the first block. */
  #checkpointAt = 0;
  /** True while a log that a rebuild of the index made large waits to be copied into the file. */
  #isCopyDue = false;
  /** True while somebody copies the file: new blocks then stay in the log. */
  #isFileHeld = false;

  private constructor(parts: ChainDependencies, head: BlockHead) {
    this.options = parts.options;
    this.#database = parts.database;
    this.#listener = parts.listener;
    this.nodes = parts.nodes;
    this.blocks = new BlockReader(parts.database);
    this.pool = new Pool((sender) => this.nodes.head().findAccount(fromHex(sender))?.nonce ?? 0n);
    this.#sealer = new Sealer(parts.executor, parts.state);
    this.#head = head;
  }

  static async open(database: ChainDatabase, options: ChainOptions, listener: ChainListener): Promise<Chain> {
    database.loadUnsaved();
    const stored = database.findHead();
    const nodes = new NodeStore(database, stored?.header.stateRoot);
    const head = stored ?? (await writeGenesis(database, nodes, options));
    const state = new ExecutionState(nodes.head());
    const readBlockHash = (number: bigint): Uint8Array => database.findBlockHead(number)?.hash ?? new Uint8Array(32);
    const { chainId, checkInterval, registryCode } = options;
    const evm = await createChainEvm({ chainId, state, readBlockHash });
    const onMismatch = (error: Error): void => listener.mismatchFound(error);
    const executor = new Executor({ chainId, evm, state, registryCode, checkInterval, onMismatch });
    return new Chain({ options, database, nodes, state, executor, listener }, head);
  }

  get head(): BlockHead {
    return this.#head;
  }

  /**
   * Adds a signed transaction to the pool for the next block. Returns its hash.
   * @throws ProviderRpcError if the chain does not accept it; ChainDamagedError if the sender's account is damaged.
   */
  submit(raw: Uint8Array): Hex {
    if (this.#isStopping) throw serverError("the chain is stopping");
    if (this.#fault !== undefined) throw serverError(`no block can be written: ${this.#fault.message}`);
    if (raw.length > this.options.transactionBytesMax) {
      throw serverError(`oversized data: transaction size ${raw.length}, limit ${this.options.transactionBytesMax}`);
    }
    const { chainId, blockGasLimit } = this.options;
    const rules = { chainId: BigInt(chainId), blockGasLimit, baseFeePerGas: BASE_FEE_PER_GAS };
    const transaction = admit(parseTransaction(raw), rules);
    const account = this.nodes.head().findAccount(transaction.sender);
    if (transaction.nonce >= (account?.nonce ?? 0n)) checkFunds(transaction, account?.balance ?? 0n);
    this.pool.add(transaction);
    this.#listener.transactionPooled(transaction);
    this.#sealing ??= this.#sealLater();
    return toHex(transaction.hash);
  }

  findState(blockNumber: bigint): StateView | undefined {
    if (blockNumber === this.#head.header.number) return this.nodes.head();
    const head = this.blocks.findHead(blockNumber);
    return head === undefined ? undefined : this.nodes.findAt(head.header);
  }

  findPending(hash: string): Transaction | undefined {
    return this.pool.find(hash);
  }

  nextNonce(address: Uint8Array): bigint {
    return this.pool.nextNonce(toHex(address));
  }

  readLogPlaces(key: number, from: Place, to: Place): Iterable<Place> {
    return this.#database.readPlaces(key, from, to);
  }

  /** See {@link readVerifiedBlocks}. @throws BlockDamagedError. */
  readBlocks(range: BlockRange): Uint8Array[] {
    const head = this.#head.header.number;
    return readVerifiedBlocks(this.#database, { ...range, to: range.to < head ? range.to : head });
  }

  /** See {@link checkBlocks}. */
  checkBlocks(range: BlockRange): CheckedBlocks {
    const head = this.#head.header.number;
    return checkBlocks(this.#database, { ...range, to: range.to < head ? range.to : head });
  }

  /**
   * One step of {@link checkIndexEntries}; `isFirst` starts over. Writes nothing while the file is held.
   * @throws an error of a read, or of a disk without room for the rebuilt index.
   */
  checkIndexEntries(isFirst: boolean): CheckedIndexEntries {
    if (isFirst) this.#indexCheck = undefined;
    if (this.#isCopyDue && !this.#isFileHeld) this.#copyRebuilt();
    const check = this.#indexCheck ?? checkIndexEntries(this.#database, () => this.#isFileHeld);
    this.#indexCheck = undefined; // A check that failed cannot continue: the next step starts over.
    const logBytes = this.#database.logBytes;
    const step = check.next();
    if (step.done === true) return { isMore: false, entries: 0, ...step.value };
    this.#indexCheck = check;
    if (this.#database.logBytes > logBytes) this.#copyBeforeNextStep();
    return { isMore: true, entries: step.value, isDamaged: false };
  }

  /** See {@link checkState}. Rewrites damaged nodes and code that are still in memory. */
  checkState(from: StatePlace | undefined): CheckedState {
    const { stateRoot: root } = this.#head.header;
    const source = new CheckedSource(this.#database);
    const parts = {
      source,
      root,
      repairNode: (key: string, hash: Uint8Array) =>
        this.#repair(this.nodes.recall(key, hash), (node) => this.#database.replaceNode(key, node)),
      repairCode: (hash: Uint8Array) =>
        this.#repair(this.nodes.recallCode(hash), (code) => this.#database.replaceCode(hash, code)),
    };
    return checkState(parts, from, CHECKED_NODES_MAX);
  }

  /** Writes bytes that are still in memory. Returns whether they were there and could be written. */
  #repair(bytes: Uint8Array | undefined, write: (bytes: Uint8Array) => void): boolean {
    if (bytes === undefined) return false;
    try {
      write(bytes);
      return true;
    } catch (error) {
      if (isTransientFault(error)) throw error;
      return false;
    }
  }

  /** See {@link repairBlock}. */
  repairBlock(block: RepairableBlock): boolean {
    return repairBlock(this.#database, block);
  }

  /**
   * Writes all blocks into the file and keeps it unchanged until {@link releaseFile}: new blocks go to the log only. Returns false, and does not hold the file,
   * while a reader needs the log.
   */
  holdFile(): boolean {
    this.#isFileHeld = this.#database.checkpoint();
    return this.#isFileHeld;
  }

  releaseFile(): void {
    this.#isFileHeld = false;
    this.#checkpointWhenLarge();
  }

  /** Finishes the block in progress and closes the database. */
  async stop(options: CloseOptions = {}): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#retry);
    await this.#sealing;
    this.#database.close(options);
  }

  /** Makes the next block. Lets messages that have already arrived be handled first, so that all waiting transactions go into one block. */
  async #sealLater(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    const isMore = await this.#sealBlock().catch((error: unknown) => {
      if (error instanceof ChainDamagedError) this.#listener.damageFound(error);
      else if (isTransientFault(error)) this.#retryLater(error instanceof Error ? error : new Error(String(error)));
      else throw error;
      return false;
    });
    this.#listener.sealingEnded();
    this.#sealing = isMore && !this.#isStopping ? this.#sealLater() : undefined;
  }

  /** Makes one block of transactions of the pool. Returns whether another block can follow at once. */
  async #sealBlock(): Promise<boolean> {
    const sealed = await this.#sealer.seal({
      parent: this.#head,
      view: this.nodes.head(),
      candidates: this.pool.executable(),
      now: BigInt(Math.floor(this.#clock.now() / 1_000)),
      gasLimit: this.options.blockGasLimit,
    });
    for (const transaction of sealed.dropped) this.pool.remove(transaction);
    if (sealed.block === undefined) {
      this.#setFault(undefined); // No transaction waits for another try. Ends the fault, since only a new transaction shows whether blocks can be written.
      return false;
    }
    try {
      if (this.#database.unsavedBytes >= this.options.unsavedBytesMax) this.#database.save();
      this.#database.commitBlock(sealed);
    } catch (error) {
      this.#retryLater(error instanceof Error ? error : new Error(String(error)));
      return false;
    }
    this.nodes.apply(sealed.block.header.number, sealed);
    this.#accept(sealed.block, sealed.receipts);
    return this.pool.size > 0;
  }

  #accept(block: Block, receipts: readonly Uint8Array[]): void {
    this.#head = block;
    for (const { transaction } of block.executed) this.pool.remove(transaction);
    this.#setFault(undefined);
    this.#listener.blockSealed(block, receipts);
    this.#checkpointWhenLarge();
  }

  /** Reports a fault and tries again later. Nothing of a block that was not written was announced: its transactions wait in the pool for the next try. */
  #retryLater(error: Error): void {
    this.#setFault(error);
    clearTimeout(this.#retry);
    if (this.#isStopping) return;
    this.#retry = setTimeout(() => {
      this.#sealing ??= this.#sealLater();
    }, COMMIT_RETRY_MS);
  }

  #setFault(fault: Error | undefined): void {
    if (fault === this.#fault) return;
    this.#fault = fault;
    this.#listener.faultChanged(fault);
  }

  /** Copies a large log into the file. If that fails, reports a fault, and the chain refuses submits until it tries again, within COMMIT_RETRY_MS. */
  #checkpointWhenLarge(): void {
    if (this.#isFileHeld || this.#database.logBytes < this.#checkpointAt) return;
    try {
      this.#checkpoint();
    } catch (error) {
      this.#retryLater(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /**
   * If the log is large, lets the next step of a check copy it into the file. A rebuild writes many pages for each block that it reads, and perhaps no new
   * block comes, after which the chain would copy the log. Until that step, blocks do not copy the log, since a failed copy after a block is a fault.
   */
  #copyBeforeNextStep(): void {
    if (this.#database.logBytes < Math.max(LOG_BYTES_MAX, this.#checkpointAt)) return;
    this.#isCopyDue = true;
    this.#leaveRoom();
  }

  /** Copies the log before a step of a check. An error fails only that step, before it writes anything: blocks may still fit into the log. */
  #copyRebuilt(): void {
    this.#leaveRoom();
    this.#checkpoint();
  }

  /** Copies the log into the file. While a reader needs the end of the log, the log keeps growing. */
  #checkpoint(): void {
    if (this.#database.checkpoint()) this.#checkpointAt = LOG_BYTES_MAX;
    else this.#leaveRoom();
    this.#isCopyDue = false;
  }

  /** Lets the log grow by LOG_BYTES_MAX / 2 before a block tries to copy it. */
  #leaveRoom(): void {
    this.#checkpointAt = this.#database.logBytes + LOG_BYTES_MAX / 2;
  }
}

interface ChainDependencies {
  readonly options: ChainOptions;
  readonly database: ChainDatabase;
  readonly nodes: NodeStore;
  readonly state: ExecutionState;
  readonly executor: Executor;
  readonly listener: ChainListener;
}

async function writeGenesis(database: ChainDatabase, nodes: NodeStore, options: ChainOptions): Promise<BlockHead> {
  const genesis = await createGenesis(nodes.head(), {
    accounts: options.genesisAccounts,
    gasLimit: options.blockGasLimit,
  });
  database.commitBlock(genesis, () => {
    database.writeSetting("chainId", String(options.chainId));
    database.writeSetting("genesisAccounts", options.genesisAccounts.join(",").toLowerCase());
  });
  nodes.apply(0n, genesis);
  return genesis.block;
}
