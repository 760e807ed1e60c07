import { keccak256, orderedRoot } from "@stele/eth/node";
import type { Block, BlockHead, ExecutedTransaction } from "../blocks/block.ts";
import { createBloom, mergeBlooms } from "../blocks/bloom.ts";
import { encodeHeader, type Header } from "../blocks/header.ts";
import { encodeReceipt, type Receipt } from "../blocks/receipt.ts";
import { effectiveGasPrice, type Transaction } from "../blocks/transaction.ts";
import { toEvmBlock } from "../execution/evm.ts";
import type { Execution } from "../execution/execute.ts";
import type { Executor } from "../execution/executor.ts";
import { BASE_FEE_PER_GAS, BLOCK_TRANSACTIONS_MAX } from "../limits.ts";
import { type AdmittedTransaction, checkFunds } from "../pool/admit.ts";
import type { ExecutionState } from "../state/execution-state.ts";
import type { AppliedChanges } from "../state/node-store.ts";
import { sealState } from "../state/seal-state.ts";
import type { StateView } from "../state/state-view.ts";
import type { BlockCommit } from "../storage/chain-database.ts";

export interface SealRequest {
  readonly parent: BlockHead;
  readonly view: StateView;
  readonly candidates: Iterable<AdmittedTransaction>;
  /** Seconds since the epoch. */
  readonly now: bigint;
  readonly gasLimit: bigint;
}

export interface SealedBlock extends BlockCommit, AppliedChanges {
  /** The receipts as their trie holds them. */
  readonly receipts: readonly Uint8Array[];
  /** Candidates that cannot run, and the later candidates of their senders. */
  readonly dropped: readonly Transaction[];
}

/** Makes one block of the candidates that fit, and none if no candidate can run. */
export class Sealer {
  readonly #executor: Executor;
  readonly #state: ExecutionState;

  constructor(executor: Executor, state: ExecutionState) {
    this.#executor = executor;
    this.#state = state;
  }

  async seal(
    request: SealRequest,
  ): Promise<SealedBlock | { readonly block: undefined; readonly dropped: readonly Transaction[] }> {
    this.#state.reset(request.view);
    const { parent, now } = request;
    const timestamp = now > parent.header.timestamp ? now : parent.header.timestamp;
    const context = {
      number: parent.header.number + 1n,
      timestamp,
      gasLimit: request.gasLimit,
      baseFeePerGas: BASE_FEE_PER_GAS,
    };
    const { executed, dropped } = await this.#executeAll(request, context);
    if (executed.length === 0) return { block: undefined, dropped };
    const changes = this.#state.changes();
    const { root, nodes, overwritten } = sealState(request.view, changes);
    const { receipts, ...summary } = summarize(executed);
    const header: Header = { parentHash: parent.hash, stateRoot: root, ...context, ...summary };
    const block: Block = { header, hash: keccak256(encodeHeader(header)), executed };
    return { block, receipts, root, nodes, overwritten, storage: changes.storage, codes: changes.codes, dropped };
  }

  async #executeAll(
    request: SealRequest,
    context: BlockContext,
  ): Promise<{ executed: ExecutedTransaction[]; dropped: Transaction[] }> {
    const evmBlock = toEvmBlock(context);
    const executed: ExecutedTransaction[] = [];
    const dropped: Transaction[] = [];
    const failed = new Set<string>();
    let cumulativeGasUsed = 0n;
    let firstLogIndex = 0;
    for (const transaction of request.candidates) {
      if (executed.length >= BLOCK_TRANSACTIONS_MAX || cumulativeGasUsed + transaction.gasLimit > context.gasLimit)
        break;
      const sender = Buffer.from(transaction.sender).toString("latin1");
      const execution = failed.has(sender) ? undefined : await this.#tryExecute(transaction, evmBlock);
      if (execution === undefined) {
        failed.add(sender);
        dropped.push(transaction);
        continue;
      }
      cumulativeGasUsed += execution.gasUsed;
      executed.push({ transaction, receipt: toReceipt(transaction, execution, { cumulativeGasUsed, firstLogIndex }) });
      firstLogIndex += execution.logs.length;
    }
    return { executed, dropped };
  }

  /** Executes a transaction; undefined when it can no longer run, for instance because an earlier one spent the sender's funds. */
  async #tryExecute(
    transaction: AdmittedTransaction,
    evmBlock: ReturnType<typeof toEvmBlock>,
  ): Promise<Execution | undefined> {
    const account = this.#state.readAccount(transaction.sender);
    if (account?.isContract() === true || (account?.nonce ?? 0n) !== transaction.nonce) return undefined;
    try {
      checkFunds(transaction, account?.balance ?? 0n);
    } catch {
      return undefined;
    }
    const gasPrice = effectiveGasPrice(transaction, evmBlock.header.baseFeePerGas);
    const { sender: from, to, gasLimit, value, data, accessList, intrinsicGas } = transaction;
    return this.#executor.execute({ from, to, gasLimit, gasPrice, value, data, accessList, intrinsicGas }, evmBlock);
  }
}

type BlockContext = Pick<Header, "number" | "timestamp" | "gasLimit" | "baseFeePerGas">;

function toReceipt(
  transaction: Transaction,
  execution: Execution,
  sums: { readonly cumulativeGasUsed: bigint; readonly firstLogIndex: number },
): Receipt {
  return {
    isSuccess: execution.failure === undefined,
    gasUsed: execution.gasUsed,
    effectiveGasPrice: effectiveGasPrice(transaction, BASE_FEE_PER_GAS),
    logs: execution.logs,
    ...sums,
  };
}

type Summary = Pick<Header, "transactionsRoot" | "receiptsRoot" | "logsBloom" | "gasUsed">;

function summarize(executed: readonly ExecutedTransaction[]): Summary & Pick<SealedBlock, "receipts"> {
  const blooms = executed.map(({ receipt }) => createBloom(receipt.logs));
  const receipts = executed.map(({ transaction, receipt }, index) =>
    encodeReceipt(receipt, transaction.type, blooms[index]),
  );
  return {
    receipts,
    transactionsRoot: orderedRoot(executed.map(({ transaction }) => transaction.raw)),
    receiptsRoot: orderedRoot(receipts),
    logsBloom: mergeBlooms(blooms),
    gasUsed: executed.at(-1)?.receipt.cumulativeGasUsed ?? 0n,
  };
}
