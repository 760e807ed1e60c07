import type { BlockRef } from "../../../ports/ledger.ts";
import type { Header, Rpc } from "../endpoint/rpc.ts";
import { isUnanswered, RpcFailure } from "../endpoint/rpc-failure.ts";

/** Which blocks are final: all (`latest`), those that the chain calls `safe` or `finalized`, or those with this number of blocks on top. */
export type Finality = "latest" | "safe" | "finalized" | number;

/** The newest final block, with its header if that is known without another request. */
export interface FinalBlock {
  /** -1 if none is final yet. */
  readonly number: number;
  /** Undefined if finality is a number of blocks: keeping that many heads would cost more than the reader's one request per block. */
  readonly header: Header | undefined;
}

const none: FinalBlock = { number: -1, header: undefined };

export class FinalityPolicy {
  readonly #rpc: Rpc;
  readonly #finality: Finality;

  constructor(rpc: Rpc, finality: Finality) {
    this.#rpc = rpc;
    this.#finality = finality;
  }

  /** Whether the chain names its final block. Then a block may become final although no newer block follows it. */
  get isTagged(): boolean {
    return this.#finality === "safe" || this.#finality === "finalized";
  }

  /** As {@link finalAt}, but always with number and hash; undefined if no block is final yet. @throws RpcFailure. */
  async findFinal(latest: Header): Promise<BlockRef | undefined> {
    const { number, header } = await this.finalAt(latest);
    return number < 0 ? undefined : (header ?? this.#rpc.header(number));
  }

  /** The newest final block if `latest` is the head. @throws RpcFailure. */
  async finalAt(latest: Header): Promise<FinalBlock> {
    const finality = this.#finality;
    if (finality === "latest") return { number: latest.number, header: latest };
    if (finality === "safe" || finality === "finalized") return this.#tagged(finality);
    return latest.number < finality ? none : { number: latest.number - finality, header: undefined };
  }

  /** The newest block with this tag. A chain node that has no such block answers null or an error; some chains never have one. */
  async #tagged(tag: "safe" | "finalized"): Promise<FinalBlock> {
    try {
      const header = await this.#rpc.findHeader(tag);
      return header === undefined ? none : { number: header.number, header };
    } catch (error) {
      if (!(error instanceof RpcFailure) || isUnanswered(error)) throw error;
      const { kind, message } = error;
      if (kind === "refused" && /not found|unknown block/i.test(message)) return none;
      const reason = `the endpoint does not return its ${tag} block, which the group's finality asks for: ${message}`;
      throw new RpcFailure(kind, reason, { cause: error });
    }
  }
}
