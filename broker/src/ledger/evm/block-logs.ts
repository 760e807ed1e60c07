import type { Address } from "../../domain/topic.ts";
import type { BlockRef } from "../../ports/ledger.ts";
import type { Hex } from "./hex.ts";
import { logSignatures, rejectedSignature, topicSignatures } from "./parse-log.ts";
import type { LogFilter, Rpc, RpcLog } from "./rpc.ts";
import { RpcFailure } from "./rpc-failure.ts";
import type { TopicSet } from "./topic-set.ts";

export interface BlockLogsOptions {
  readonly rpc: Rpc;
  readonly registry: Address;
  /** The account that signs for us. */
  readonly account: Address;
  readonly topics: TopicSet;
}

/**
 * The logs of one block, named by its hash: an endpoint that has not got the block says so, where a question by number would be answered with
 * nothing. Anyone can write logs under our signatures. When the endpoint does not give all of them, those of the registry and of its topics are
 * asked for. Anyone can make the registry reject batches, for 3,500 gas each, so of these only our own are asked for then.
 */
export class BlockLogs {
  readonly #options: BlockLogsOptions;
  #isByHash = true;

  constructor(options: BlockLogsOptions) {
    this.#options = options;
  }

  /** In the order of the block; none is missing but of batches that the registry rejected for others. @throws RpcFailure. */
  async read(block: BlockRef): Promise<readonly RpcLog[]> {
    try {
      return await this.#ask(block, { signatures: logSignatures });
    } catch (error) {
      if (!mayBeTooMuch(error)) throw error;
      return this.#readOurs(block);
    }
  }

  async #readOurs(block: BlockRef): Promise<readonly RpcLog[]> {
    const { registry, account, topics } = this.#options;
    const addresses = [registry];
    const rejected = { signatures: [rejectedSignature], addresses, sender: account };
    const logs = [...(await this.#ask(block, rejected)), ...(await this.#readOfRegistry(topicSignatures, block))];
    for await (const page of topics.list(block)) {
      if (page.length > 0) logs.push(...(await this.#readOf(page, block)));
    }
    return logs.toSorted((left, right) => Number(left.logIndex) - Number(right.logIndex));
  }

  /** Logs of the registry under these signatures, under one at a time where the endpoint does not give them at once. */
  async #readOfRegistry(signatures: readonly Hex[], block: BlockRef): Promise<readonly RpcLog[]> {
    try {
      return await this.#ask(block, { signatures, addresses: [this.#options.registry] });
    } catch (error) {
      if (signatures.length === 1 || !mayBeTooMuch(error)) throw error;
      const logs: RpcLog[] = [];
      for (const signature of signatures) logs.push(...(await this.#readOfRegistry([signature], block)));
      return logs;
    }
  }

  /** Logs of these contracts, of fewer at a time where the endpoint does not give them at once. */
  async #readOf(addresses: readonly Address[], block: BlockRef): Promise<readonly RpcLog[]> {
    try {
      return await this.#ask(block, { signatures: logSignatures, addresses });
    } catch (error) {
      if (addresses.length === 1 || !mayBeTooMuch(error)) throw error;
      const middle = addresses.length >> 1;
      const first = await this.#readOf(addresses.slice(0, middle), block);
      return [...first, ...(await this.#readOf(addresses.slice(middle), block))];
    }
  }

  async #ask(block: BlockRef, filter: LogFilter): Promise<readonly RpcLog[]> {
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
