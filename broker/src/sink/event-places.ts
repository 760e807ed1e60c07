import { formatCompactProof, MerkleTree } from "@stele/wire";
import type { Event, EventBatch, Extensions } from "../domain/event.ts";

/** Hashes of Merkle trees that are kept, two an event; the batch that was used least recently makes room. */
const treeHashesMax = 262_144;
const hashesPerEvent = 2;

export interface EventPlacesOptions {
  /** What the names of the extensions begin with. */
  readonly prefix: string;
  /** Makes the tree of an encoded batch; a {@link MerkleTree} when left out. */
  readonly createTree?: (encoded: Uint8Array) => MerkleTree;
}

/** Tells where on the chain an event is, as extensions of its notification. */
export class EventPlaces {
  readonly #prefix: string;
  readonly #createTree: (encoded: Uint8Array) => MerkleTree;
  /** Trees by what identifies a batch, since a batch that is read again is another object. */
  readonly #trees = new Map<string, MerkleTree>();
  #hashes = 0;

  constructor({ prefix, createTree = createMerkleTree }: EventPlacesOptions) {
    this.#prefix = prefix;
    this.#createTree = createTree;
  }

  /** The event's extensions and its place, which takes the names of its own from them. */
  extensionsOf(event: Event): Extensions {
    const { batch, extensions } = event;
    if (batch === undefined) return extensions;
    const index = event.sequence - batch.firstSequence;
    const path = this.#treeOf(batch).path(index);
    const place: Extensions = [
      [`${this.#prefix}block`, String(batch.blockNumber)],
      [`${this.#prefix}tx`, batch.transactionHash],
      [`${this.#prefix}publisher`, batch.publisher],
      [`${this.#prefix}proof`, formatCompactProof({ index, count: batch.count, path })],
    ];
    const names = new Set(place.map(([name]) => name));
    return [...extensions.filter(([name]) => !names.has(name)), ...place];
  }

  #treeOf(batch: EventBatch): MerkleTree {
    const key = `${batch.transactionHash} ${batch.logIndex}`;
    const known = this.#trees.get(key);
    const tree = known ?? this.#createTree(batch.events);
    this.#trees.delete(key);
    this.#trees.set(key, tree);
    if (known === undefined) this.#makeRoom(tree);
    return tree;
  }

  #makeRoom(added: MerkleTree): void {
    this.#hashes += added.count * hashesPerEvent;
    for (const [oldest, tree] of this.#trees) {
      if (this.#hashes <= treeHashesMax || tree === added) return;
      this.#trees.delete(oldest);
      this.#hashes -= tree.count * hashesPerEvent;
    }
  }
}

function createMerkleTree(encoded: Uint8Array): MerkleTree {
  return new MerkleTree(encoded);
}
