import { hashBytes } from "@stele/eth";
import { copyLevel, hashLeaves, hashLevel } from "./merkle-leaves.ts";

/** The whole Merkle tree of a batch, for callers that need the paths of many events. It takes 64 bytes an event. */
export class MerkleTree {
  /** One buffer for each level, from the leaves to the root, with the hashes of the level. */
  readonly #levels: readonly Uint8Array[];

  /** @throws MalformedError as merkleRoot does. */
  constructor(encoded: Uint8Array) {
    let level = hashLeaves(encoded);
    const levels = [copyLevel(level)];
    while (level.count > 1) {
      level = hashLevel(level);
      levels.push(copyLevel(level));
    }
    this.#levels = levels;
  }

  /** Number of events. */
  get count(): number {
    return (this.#levels[0]?.length ?? 0) / hashBytes;
  }

  /** Same as `merklePath`. */
  path(index: number): Uint8Array[] {
    if (!Number.isInteger(index) || index < 0 || index >= this.count) {
      throw new RangeError(`no event ${index} of ${this.count}`);
    }
    return this.#levels.flatMap((level, height) => {
      const at = ((index >> height) ^ 1) * hashBytes;
      return at < level.length ? [level.slice(at, at + hashBytes)] : [];
    });
  }
}
