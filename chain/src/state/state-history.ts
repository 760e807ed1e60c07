import { STATE_HISTORY_BLOCKS_MAX, STATE_HISTORY_BYTES_MAX } from "../limits.ts";
import type { NodeChanges } from "./node-changes.ts";
import { decodeNodes, encodeNodes } from "./shared-nodes.ts";

interface Layer {
  /** The block whose changes overwrote these nodes. */
  readonly blockNumber: bigint;
  readonly overwritten: NodeChanges;
  readonly bytes: number;
  /** Made when another thread first asks for it. */
  shared?: SharedArrayBuffer;
}

/** What one block overwrote, for another thread. */
export interface SharedLayer {
  readonly blockNumber: bigint;
  readonly nodes: SharedArrayBuffer;
}

/** The trie nodes that recent blocks overwrote, oldest block first: enough to read the state before each of them. */
export class StateHistory {
  readonly #layers: Layer[] = [];
  #bytes = 0;

  /** The newest block that it knows. */
  get newest(): bigint | undefined {
    return this.#layers.at(-1)?.blockNumber;
  }

  add(blockNumber: bigint, overwritten: NodeChanges): void {
    const bytes = countBytes(overwritten);
    this.#layers.push({ blockNumber, overwritten, bytes });
    this.#bytes += bytes;
    while (this.#layers.length > STATE_HISTORY_BLOCKS_MAX || this.#bytes > STATE_HISTORY_BYTES_MAX) {
      this.#bytes -= this.#layers.shift()?.bytes ?? 0;
    }
  }

  /** Takes over what another thread shares; layers that leave a gap replace everything. */
  follow(layers: readonly SharedLayer[]): void {
    const [first] = layers;
    if (first !== undefined && first.blockNumber !== (this.newest ?? 0n) + 1n) {
      this.#layers.length = 0;
      this.#bytes = 0;
    }
    for (const { blockNumber, nodes } of layers) this.add(blockNumber, decodeNodes(nodes));
  }

  /** The layers of the blocks after one, for another thread; all of them without it. */
  share(after: bigint | undefined): SharedLayer[] {
    const layers = this.#layers.filter(({ blockNumber }) => after === undefined || blockNumber > after);
    return layers.map((layer) => {
      layer.shared ??= encodeNodes(layer.overwritten);
      return { blockNumber: layer.blockNumber, nodes: layer.shared };
    });
  }

  /** What the blocks after one overwrote, up to `to`, oldest first; undefined when that is no longer known. */
  findSince(blockNumber: bigint, to = this.newest ?? 0n): readonly NodeChanges[] | undefined {
    const from = this.#layers.findIndex((layer) => layer.blockNumber === blockNumber + 1n);
    if (from === -1) return undefined;
    return this.#layers.slice(from, from + Number(to - blockNumber)).map((layer) => layer.overwritten);
  }
}

function countBytes(nodes: NodeChanges): number {
  let bytes = 0;
  for (const [key, node] of nodes) bytes += key.length + (node?.length ?? 0);
  return bytes;
}
