import { STATE_HISTORY_BLOCKS_MAX, STATE_HISTORY_BYTES_MAX } from "../limits.ts";
import type { NodeChanges } from "./node-changes.ts";
import { decodeNodes, shareNodes } from "./nodes-codec.ts";

/** The nodes that one block overwrote, in memory that threads share. */
export interface SharedLayer {
  /** The block whose changes overwrote these nodes. */
  readonly blockNumber: bigint;
  readonly nodes: SharedArrayBuffer;
}

/**
 * The trie nodes that recent blocks overwrote, oldest block first: enough to read the state before each of them. Each layer is one piece of
 * memory, because a map of small nodes takes four times their bytes.
 */
export class StateHistory {
  readonly #layers: SharedLayer[] = [];
  #bytes = 0;

  /** The newest block in the history. */
  get newest(): bigint | undefined {
    return this.#layers.at(-1)?.blockNumber;
  }

  add(blockNumber: bigint, overwritten: NodeChanges): void {
    this.#push({ blockNumber, nodes: shareNodes(overwritten) });
  }

  /** Adds layers that another thread shares. If they do not continue the present layers without a gap, they replace the present layers. */
  follow(layers: readonly SharedLayer[]): void {
    const [first] = layers;
    if (first !== undefined && first.blockNumber !== (this.newest ?? 0n) + 1n) {
      this.#layers.length = 0;
      this.#bytes = 0;
    }
    for (const layer of layers) this.#push(layer);
  }

  /** The layers of blocks after `after`, for another thread; all layers if `after` is undefined. */
  share(after: bigint | undefined): SharedLayer[] {
    return this.#layers.filter(({ blockNumber }) => after === undefined || blockNumber > after);
  }

  /** The nodes that blocks after `blockNumber` overwrote, up to `to`, oldest first; undefined if the history lacks one of these blocks. */
  findSince(blockNumber: bigint, to = this.newest ?? 0n): readonly NodeChanges[] | undefined {
    const from = this.#layers.findIndex((layer) => layer.blockNumber === blockNumber + 1n);
    const count = Number(to - blockNumber);
    if (from === -1 || from + count > this.#layers.length) return undefined;
    return this.#layers.slice(from, from + count).map(({ nodes }) => decodeNodes(Buffer.from(nodes)));
  }

  #push(layer: SharedLayer): void {
    this.#layers.push(layer);
    this.#bytes += layer.nodes.byteLength;
    while (this.#layers.length > STATE_HISTORY_BLOCKS_MAX || this.#bytes > STATE_HISTORY_BYTES_MAX) {
      this.#bytes -= this.#layers.shift()?.nodes.byteLength ?? 0;
    }
  }
}
