import { BlockRepair, type BlockRepairOptions } from "./block-repair.ts";
import type { Scrubbable } from "./scrubber.ts";

/** Checks every block of the chain's file against its hashes, and repairs damaged blocks from the index. */
export class ChainScrub implements Scrubbable {
  readonly part = "chain";
  readonly #options: BlockRepairOptions;
  readonly #repair: BlockRepair;
  #from = 0;
  #damaged = 0;
  #repaired = 0;

  constructor(options: BlockRepairOptions) {
    this.#options = options;
    this.#repair = new BlockRepair(options);
  }

  get progress() {
    const advice = this.#options.chainDamage.warning;
    return { checked: this.#from, damaged: this.#damaged, repaired: this.#repaired, advice };
  }

  async step(): Promise<boolean> {
    const { chainCheck, chainDamage, groupId, metrics } = this.#options;
    const from = this.#from;
    const checked = await chainCheck.check(from);
    if (checked === undefined) return false;
    const found = new Map(checked.damaged.map((one) => [one.number, one]));
    for (let number = from; number <= checked.upTo; number += 1) {
      const block = found.get(number);
      if (block === undefined) chainDamage.clear(number);
      else {
        this.#damaged += 1;
        if (await this.#repair.repair(block)) this.#repaired += 1;
      }
    }
    metrics.chainScrubbed(groupId, { block: checked.upTo, blocks: checked.upTo - from + 1 });
    this.#from = checked.upTo + 1;
    return true;
  }
}
