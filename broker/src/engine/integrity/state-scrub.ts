import type { GroupId } from "../../domain/group-id.ts";
import type { Logger } from "../../lib/logger.ts";
import type { ChainCheck, StatePlace } from "../../ports/chain-check.ts";
import type { Metrics } from "../../ports/metrics.ts";
import type { ChainDamage } from "./chain-damage.ts";
import type { Scrubbable } from "./scrubber.ts";

export interface StateScrubOptions {
  readonly groupId: GroupId;
  readonly chainCheck: ChainCheck;
  readonly chainDamage: ChainDamage;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

/** Checks every trie node and contract's code of the chain's newest state against its hash. */
export class StateScrub implements Scrubbable {
  readonly part = "state";
  readonly #options: StateScrubOptions;
  #from: StatePlace | undefined;
  #isDone = false;
  #checked = 0;
  #damaged = 0;
  #repaired = 0;

  constructor(options: StateScrubOptions) {
    this.#options = options;
  }

  get progress() {
    const advice = this.#damaged > this.#repaired ? this.#options.chainDamage.warning : undefined;
    return { checked: this.#checked, damaged: this.#damaged, repaired: this.#repaired, advice };
  }

  async step(): Promise<boolean> {
    if (this.#isDone) return false;
    const { next, nodes, damaged, repaired } = await this.#options.chainCheck.checkState(this.#from);
    this.#checked += nodes;
    this.#damaged += damaged.length + repaired;
    this.#repaired += repaired;
    if (repaired > 0) this.#reportRepaired(repaired);
    for (const reason of damaged) this.#reportDamaged(reason);
    this.#from = next;
    this.#isDone = next === undefined;
    if (this.#isDone && this.#damaged === this.#repaired) this.#options.chainDamage.clearState();
    return true;
  }

  #reportRepaired(nodes: number): void {
    const { metrics, logger, groupId } = this.#options;
    for (let node = 0; node < nodes; node += 1) metrics.chainDamaged(groupId, "mended");
    logger.warn("chain state damaged, written again from memory", { nodes });
  }

  #reportDamaged(reason: string): void {
    const { metrics, logger, groupId, chainDamage } = this.#options;
    if (chainDamage.hasState(reason)) return;
    chainDamage.noteState(reason);
    metrics.chainDamaged(groupId, "unmended");
    logger.error("chain state damaged, and not repaired", { reason, remedy: chainDamage.warning });
  }
}
