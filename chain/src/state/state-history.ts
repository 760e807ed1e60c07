import { STATE_HISTORY_BLOCKS_MAX, STATE_HISTORY_BYTES_MAX } from "../limits.ts";
import type { NodeChanges } from "./node-changes.ts";

interface Layer {
  /** The block whose changes overwrote these nodes. */
  readonly blockNumber: bigint;
  readonly overwritten: NodeChanges;
  readonly bytes: number;
}

/** The trie nodes that recent blocks overwrote, oldest block first: enough to read the state before each of them. */
export class StateHistory {
  readonly #layers: Layer[] = [];
  #bytes = 0;

  add(blockNumber: bigint, overwritten: NodeChanges): void {
    const bytes = countBytes(overwritten);
    this.#layers.push({ blockNumber, overwritten, bytes });
    this.#bytes += bytes;
    while (this.#layers.length > STATE_HISTORY_BLOCKS_MAX || this.#bytes > STATE_HISTORY_BYTES_MAX) {
      this.#bytes -= this.#layers.shift()?.bytes ?? 0;
    }
  }

  /** What was overwritten after a block, oldest first; undefined when that is no longer known. */
  findSince(blockNumber: bigint): readonly NodeChanges[] | undefined {
    const from = this.#layers.findIndex((layer) => layer.blockNumber === blockNumber + 1n);
    return from === -1 ? undefined : this.#layers.slice(from).map((layer) => layer.overwritten);
  }
}

function countBytes(nodes: NodeChanges): number {
  let bytes = 0;
  for (const [key, node] of nodes) bytes += key.length + (node?.length ?? 0);
  return bytes;
}
