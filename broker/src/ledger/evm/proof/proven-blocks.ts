import type { Hash } from "../../../domain/topic.ts";
import type { ProvenBlock } from "./proven-block.ts";

/** How long a block is kept for further proofs, in milliseconds. */
const provenBlockKeptMs = 5_000;
/** Upper bound on the blocks that are kept for proofs or being read for them; the oldest are dropped. Each may take twice the bytes of its receipts. */
const provenBlocksMax = 2;

/** Reads a block once for concurrent proofs and for those soon after. */
export class ProvenBlocks {
  readonly #read: (number: number) => Promise<ProvenBlock>;
  /** By number and wanted hash; oldest first. */
  readonly #blocks = new Map<string, Promise<ProvenBlock>>();

  /** `read` must have a timeout of its own, since it may outlast its callers. */
  constructor(read: (number: number) => Promise<ProvenBlock>) {
    this.#read = read;
  }

  /** Returns block `number`, for callers that want the one with this hash. The result may have another hash; then the next call reads the block again. */
  get(number: number, hash?: Hash): Promise<ProvenBlock> {
    const key = `${number} ${hash}`;
    const known = this.#blocks.get(key);
    if (known !== undefined) return known;
    const block = this.#read(number);
    this.#blocks.set(key, block);
    const forget = (): void => void (this.#blocks.get(key) === block && this.#blocks.delete(key));
    const keep = (found: ProvenBlock): void => {
      if ((hash ?? found.hash) === found.hash) setTimeout(forget, provenBlockKeptMs).unref();
      else forget();
    };
    block.then(keep, forget);
    const [oldest = key] = this.#blocks.keys();
    if (this.#blocks.size > provenBlocksMax) this.#blocks.delete(oldest);
    return block;
  }
}
