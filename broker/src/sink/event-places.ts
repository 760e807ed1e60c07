import { formatCompactProof, MerkleTree } from "@stele/wire";
import type { Event, EventBatch, Extensions } from "../domain/event.ts";
import { checksumOfBytes } from "../lib/bytes-checksum.ts";

/** Maximum number of hashes in cached Merkle trees, two per event; the least recently used batch makes room. */
const treeHashesMax = 262_144;
const hashesPerEvent = 2;

export interface EventPlacesOptions {
  /** Prefix of the extensions' names. */
  readonly prefix: string;
  /** Builds the tree of an encoded batch; by default a {@link MerkleTree}. */
  readonly createTree?: (encoded: Uint8Array) => MerkleTree;
}

/** Adds the place of an event on the chain to its notification, as extensions. */
export class EventPlaces {
  readonly #prefix: string;
  readonly #createTree: (encoded: Uint8Array) => MerkleTree;
  /**
   * Trees by transaction, log and checksum of the events. The batch itself is no key, because each read makes another object. The checksum is part of the key,
   * because after a reorg another batch of the transaction may have the same log index.
   */
  readonly #trees = new Map<string, MerkleTree>();
  readonly #checksums = new WeakMap<EventBatch, number>();
  #hashes = 0;

  constructor({ prefix, createTree = createMerkleTree }: EventPlacesOptions) {
    this.#prefix = prefix;
    this.#createTree = createTree;
  }

  /** The event's extensions, and its place as further ones, which replace extensions of the same names. Adds nothing to an event without a batch. */
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
    const key = `${batch.transactionHash} ${batch.logIndex} ${this.#checksumOf(batch)}`;
    const known = this.#trees.get(key);
    const tree = known ?? this.#createTree(batch.events);
    this.#trees.delete(key);
    this.#trees.set(key, tree);
    if (known === undefined) this.#makeRoom(tree);
    return tree;
  }

  #checksumOf(batch: EventBatch): number {
    const known = this.#checksums.get(batch);
    const checksum = known ?? checksumOfBytes(batch.events);
    if (known === undefined) this.#checksums.set(batch, checksum);
    return checksum;
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
