import type { Hash } from "../../../domain/topic.ts";
import { SharedCalls } from "../../../lib/shared-calls.ts";
import type { ProvenBlock } from "./proven-block.ts";

/** How long a block is kept for further proofs, in milliseconds. */
const provenBlockKeptMs = 5_000;

/** Upper bound on the memory of all blocks kept for proofs, in bytes; the oldest are dropped. A larger block is not kept. */
const provenBlocksBytesMax = 16 * 2 ** 20;

interface Kept {
  readonly block: ProvenBlock;
  /** Drops the block after `provenBlockKeptMs`. */
  readonly timer: NodeJS.Timeout;
}

/** Reads a block once for concurrent proofs and for those soon after. */
export class ProvenBlocks {
  readonly #read: (number: number) => Promise<ProvenBlock>;
  readonly #reads = new SharedCalls<number, ProvenBlock>();
  /** Oldest first. */
  readonly #kept = new Map<number, Kept>();
  #bytes = 0;

  /** `read` must have a timeout of its own, since it may outlast its callers. */
  constructor(read: (number: number) => Promise<ProvenBlock>) {
    this.#read = read;
  }

  /** Returns block `number`, read again if the kept block's hash is not `hash`. The result may still have another hash, if its read began before a reorg. */
  get(number: number, hash?: Hash): Promise<ProvenBlock> {
    const kept = this.#kept.get(number);
    if (kept !== undefined && (hash ?? kept.block.hash) === kept.block.hash) return Promise.resolve(kept.block);
    this.#drop(number);
    return this.#reads.run(number, async () => {
      const block = await this.#read(number);
      this.#keep(number, block);
      return block;
    });
  }

  #keep(number: number, block: ProvenBlock): void {
    if (block.bytes > provenBlocksBytesMax) return;
    const timer = setTimeout(() => this.#drop(number), provenBlockKeptMs).unref();
    this.#kept.set(number, { block, timer });
    this.#bytes += block.bytes;
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= provenBlocksBytesMax) return;
      this.#drop(oldest);
    }
  }

  #drop(number: number): void {
    const kept = this.#kept.get(number);
    if (kept === undefined) return;
    clearTimeout(kept.timer);
    this.#bytes -= kept.block.bytes;
    this.#kept.delete(number);
  }
}
