import type { GroupId } from "../../domain/group-id.ts";
import type { Logger } from "../../lib/logger.ts";
import type { ChainCheck } from "../../ports/chain-check.ts";
import type { Metrics } from "../../ports/metrics.ts";
import type { Scrubbable } from "./scrubber.ts";

export interface PlaceScrubOptions {
  readonly groupId: GroupId;
  readonly chainCheck: Pick<ChainCheck, "checkIndexEntries">;
  readonly metrics: Pick<Metrics, "chainDamaged">;
  readonly logger: Logger;
}

/** Compares the chain's tables of places (which block contains a hash or a log) with its blocks. The chain rebuilds damaged entries. */
export class PlaceScrub implements Scrubbable {
  readonly part = "places";
  readonly #options: PlaceScrubOptions;
  #isFirst = true;
  #checked = 0;
  #damaged = 0;

  constructor(options: PlaceScrubOptions) {
    this.#options = options;
  }

  get progress() {
    return { checked: this.#checked, damaged: this.#damaged, repaired: this.#damaged };
  }

  async step(): Promise<boolean> {
    const { isMore, entries, isDamaged } = await this.#options.chainCheck.checkIndexEntries(this.#isFirst);
    this.#isFirst = false;
    this.#checked += entries;
    if (isDamaged) this.#report();
    return isMore;
  }

  #report(): void {
    const { metrics, logger, groupId } = this.#options;
    this.#damaged += 1;
    metrics.chainDamaged(groupId, "mended");
    logger.warn("chain damaged in its index of hashes and logs, rebuilt from its blocks");
  }
}
