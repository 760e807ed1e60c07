import type { Hex } from "@stele/eth/node";
import type { Address } from "../../../domain/topic.ts";
import type { BlockRef } from "../../../ports/ledger.ts";
import type { LogFilter, Rpc } from "../endpoint/rpc.ts";
import { RpcFailure } from "../endpoint/rpc-failure.ts";
import { inOrder, type RpcLog } from "../endpoint/rpc-log.ts";
import { changeSignatures, logSignatures, refusalSignatures } from "./parse-log.ts";

export interface BlockLogsOptions {
  readonly rpc: Rpc;
  readonly registry: Address;
  /** The address of our signer. */
  readonly account: Address;
}

/**
 * Reads the registry's logs of one block by its hash: an endpoint without the block then fails, while a request by number would return nothing.
 * If the endpoint lacks requests by hash, reads them by number and compares the block's hash.
 * Anyone can make the registry log a rejection for 3,500 gas. If the endpoint does not return all logs of the block, the rejections of other
 * accounts are skipped.
 */
export class BlockLogs {
  readonly #options: BlockLogsOptions;
  #isByHash = true;

  constructor(options: BlockLogsOptions) {
    this.#options = options;
  }

  /**
   * The registry's logs of the block, in order; rejections of other accounts may be missing. If `isPromised`, asks each endpoint until one returns logs.
   * @throws RpcFailure.
   */
  async read(block: BlockRef, isPromised?: boolean): Promise<readonly RpcLog[]> {
    try {
      return await this.#ask(block, { signatures: logSignatures, isPromised });
    } catch (error) {
      if (!mayBeTooMuch(error)) throw error;
      return this.#readWithoutRefusals(block, isPromised);
    }
  }

  async #readWithoutRefusals(block: BlockRef, isPromised?: boolean): Promise<readonly RpcLog[]> {
    const { account: sender } = this.#options;
    const ours = await this.#ask(block, { signatures: refusalSignatures, sender });
    const logs = [...ours, ...(await this.#readChanges(block, changeSignatures, isPromised))];
    return inOrder(logs);
  }

  /** Logs of these signatures; one signature at a time if the endpoint refuses all at once. */
  async #readChanges(block: BlockRef, signatures: readonly Hex[], isPromised?: boolean): Promise<readonly RpcLog[]> {
    try {
      return await this.#ask(block, { signatures, isPromised });
    } catch (error) {
      if (signatures.length === 1 || !mayBeTooMuch(error)) throw error;
      const logs: RpcLog[] = [];
      for (const signature of signatures) logs.push(...(await this.#readChanges(block, [signature], isPromised)));
      return logs;
    }
  }

  async #ask(block: BlockRef, wanted: Omit<LogFilter, "address">): Promise<readonly RpcLog[]> {
    const filter = { ...wanted, address: this.#options.registry };
    const logs = this.#isByHash ? await this.#byHash(block, filter) : await this.#byNumber(block, filter);
    for (const log of logs) {
      if (log.blockHash !== block.hash || Number(log.blockNumber) !== block.number) throw changed(block, log);
    }
    return logs;
  }

  async #byHash(block: BlockRef, filter: LogFilter): Promise<readonly RpcLog[]> {
    try {
      return await this.#options.rpc.logsOf(block.hash, filter);
    } catch (error) {
      if (!(error instanceof RpcFailure) || !isUnsupported(error)) throw error;
      this.#isByHash = false;
      return this.#byNumber(block, filter);
    }
  }

  async #byNumber(block: BlockRef, filter: LogFilter): Promise<readonly RpcLog[]> {
    const { rpc } = this.#options;
    const { logs, end } = await rpc.logs({ from: block.number, to: block.number }, filter);
    const { hash } = end ?? (await rpc.header(block.number));
    if (hash !== block.hash) throw changed(block, hash);
    return logs;
  }
}

function changed({ number }: BlockRef, cause: unknown): RpcFailure {
  return new RpcFailure("refused", `block ${number} changed while it was read`, { cause });
}

/** Whether a request may have failed because of too many logs: endpoints refuse long answers in many ways, or are too slow for them. */
function mayBeTooMuch(error: unknown): boolean {
  return error instanceof RpcFailure && error.kind !== "unreached";
}

function isUnsupported({ kind, message }: RpcFailure): boolean {
  return (
    kind === "unsupported" || (kind === "refused" && /invalid (params|argument)|block ?hash.*support/i.test(message))
  );
}
