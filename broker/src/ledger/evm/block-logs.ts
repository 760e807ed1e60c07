import type { Header, Rpc, RpcLog } from "./rpc.ts";
import { RpcFailure } from "./rpc-failure.ts";
import { logSignatures } from "./parse-log.ts";

/** Receipts asked for at once. */
const receiptsAtOnce = 16;
const signatures: ReadonlySet<string | undefined> = new Set(logSignatures);

/**
 * All logs of ours in one block, named by its hash: an endpoint that has not got the block says so, where a question by number would be
 * answered with nothing. Where the endpoint has no such question, or the block holds more logs than it gives, its receipts are read.
 */
export class BlockLogs {
  readonly #rpc: Rpc;
  #isByHash = true;

  constructor(rpc: Rpc) {
    this.#rpc = rpc;
  }

  /** @throws RpcFailure. */
  async read(header: Header): Promise<readonly RpcLog[]> {
    const logs = this.#isByHash ? await this.#byHash(header) : await this.#byReceipts(header);
    for (const log of logs) {
      if (log.blockHash === header.hash && Number(log.blockNumber) === header.number) continue;
      throw new RpcFailure("refused", `block ${header.number} changed while it was read`, { cause: log });
    }
    return logs;
  }

  async #byHash(header: Header): Promise<readonly RpcLog[]> {
    try {
      return await this.#rpc.logsOf(header.hash, logSignatures);
    } catch (error) {
      if (!(error instanceof RpcFailure)) throw error;
      if (isUnsupported(error)) this.#isByHash = false;
      else if (error.kind !== "range-refused") throw error;
      return this.#byReceipts(header);
    }
  }

  async #byReceipts(header: Header): Promise<readonly RpcLog[]> {
    const logs = (await this.#rpc.blockLogs(header.hash)) ?? (await this.#oneByOne(header));
    return logs.filter(({ topics }) => signatures.has(topics[0]));
  }

  async #oneByOne(header: Header): Promise<readonly RpcLog[]> {
    const hashes = await this.#rpc.transactionsOf(header.hash);
    const logs: RpcLog[] = [];
    for (let first = 0; first < hashes.length; first += receiptsAtOnce) {
      const some = hashes.slice(first, first + receiptsAtOnce).map(async (hash) => this.#rpc.receipt(hash));
      for (const receipt of await Promise.all(some)) {
        if (receipt === undefined) throw new RpcFailure("refused", "a receipt is missing", { cause: header.hash });
        logs.push(...receipt.logs);
      }
    }
    return logs;
  }
}

function isUnsupported({ kind, message }: RpcFailure): boolean {
  return (
    kind === "unsupported" || (kind === "refused" && /invalid (params|argument)|block ?hash.*support/i.test(message))
  );
}
