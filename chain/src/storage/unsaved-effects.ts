import { fromLatin1 } from "@stele/eth/node";
import type { NodeChanges } from "../state/node-changes.ts";
import type { Place } from "./places.ts";

/** The effects of a block: the state nodes that it changed, and the places of its hashes, addresses and topics. */
export interface BlockEffects {
  readonly nodes: NodeChanges;
  readonly places: readonly IndexEntry[];
}

export interface IndexEntry {
  readonly key: number;
  readonly place: Place;
}

/** In memory, the effects of the newest blocks that are not in the tables of nodes and places yet. The file has them too, in one row for each block. */
export class UnsavedEffects {
  readonly #nodes = new Map<string, string | undefined>();
  readonly #places = new Map<number, Place[]>();
  #first: number | undefined;
  #last = -1;
  #bytes = 0;

  /** The oldest block with unsaved effects. */
  get first(): number | undefined {
    return this.#first;
  }

  /** The newest block that was ever added; -1 before the first. */
  get last(): number {
    return this.#last;
  }

  /** Bytes of the rows in the file. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Adds the effects of the next block, whose row takes `bytes` bytes. */
  add(blockNumber: number, { nodes, places }: BlockEffects, bytes: number): void {
    this.#first ??= blockNumber;
    this.#last = blockNumber;
    this.#bytes += bytes;
    nodes.forEach((node, key) => this.#nodes.set(key, node));
    for (const { key, place } of places) {
      const known = this.#places.get(key);
      if (known === undefined) this.#places.set(key, [place]);
      else known.push(place);
    }
  }

  /** All effects in the order of the tables, so that neighbouring rows are written together. */
  sorted(): { readonly nodes: [string, string | undefined][]; readonly places: [number, Place[]][] } {
    return {
      nodes: [...this.#nodes].toSorted(([left], [right]) => (left < right ? -1 : 1)),
      places: [...this.#places].toSorted(([left], [right]) => left - right),
    };
  }

  clear(): void {
    this.#nodes.clear();
    this.#places.clear();
    this.#first = undefined;
    this.#bytes = 0;
  }

  hasNode(key: string): boolean {
    return this.#nodes.has(key);
  }

  findNode(key: string): Uint8Array | undefined {
    const node = this.#nodes.get(key);
    return node === undefined ? undefined : fromLatin1(node);
  }

  findPlaces(key: number): readonly Place[] {
    return this.#places.get(key) ?? [];
  }
}
