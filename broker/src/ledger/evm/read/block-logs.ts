import type { Address } from "../../../domain/topic.ts";
import type { BlockRef } from "../../../ports/ledger.ts";
import type { Hex } from "../hex.ts";
import { changeSignatures, logSignatures, refusalSignatures } from "./parse-log.ts";
import type { LogFilter, Rpc, RpcLog } from "../endpoint/rpc.ts";
import { RpcFailure } from "../endpoint/rpc-failure.ts";

export interface BlockLogsOptions {
  readonly rpc: Rpc;
  readonly registry: Address;
  /** The account that signs for us. */
  readonly account: Address;
}

/**
 * The registry's logs of one block, named by its hash: an endpoint that has not got the block says so, where a question by number would be
 * answered with nothing. Anyone can make the registry write that it refused something, for 3,500 gas each. When the endpoint does not give all
 * logs of the block, refusals to others are left out.
 */
export class BlockLogs {
  readonly #options: BlockLogsOptions;
  #isByHash = true;

  constructor(options: BlockLogsOptions) {
    this.#options = options;
  }

  /** In the order of the block; none is missing but refusals to others. @throws RpcFailure. */
  async read(block: BlockRef): Promise<readonly RpcLog[]> {
    try {
      return await this.#ask(block, { signatures: logSignatures });
    } catch (error) {
      if (!mayBeTooMuch(error)) throw error;
      return this.#readWithoutRefusals(block);
    }
  }

  async #readWithoutRefusals(block: BlockRef): Promise<readonly RpcLog[]> {
    const ours = await this.#ask(block, { signatures: refusalSignatures, sender: this.#options.account });
    const logs = [...ours, ...(await this.#readChanges(changeSignatures, block))];
    return logs.toSorted((left, right) => Number(left.logIndex) - Number(right.logIndex));
  }

  /** Logs under these signatures, under one at a time where the endpoint does not give them at once. */
  async #readChanges(signatures: readonly Hex[], block: BlockRef): Promise<readonly RpcLog[]> {
    try {
      return await this.#ask(block, { signatures });
    } catch (error) {
      if (signatures.length === 1 || !mayBeTooMuch(error)) throw error;
      const logs: RpcLog[] = [];
      for (const signature of signatures) logs.push(...(await this.#readChanges([signature], block)));
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

/** Endpoints refuse a long answer in many words, or give it too late. Surely not, where nobody took the request. */
function mayBeTooMuch(error: unknown): boolean {
  return error instanceof RpcFailure && error.kind !== "unreached";
}

function isUnsupported({ kind, message }: RpcFailure): boolean {
  return (
    kind === "unsupported" || (kind === "refused" && /invalid (params|argument)|block ?hash.*support/i.test(message))
  );
}
