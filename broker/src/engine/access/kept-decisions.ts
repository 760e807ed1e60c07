import type { RuleAction } from "../../domain/access-rule.ts";
import { copyOf } from "../../lib/copy-of.ts";

/** Maximum number of decisions that a set of rules caches. One more empties the cache. */
const decisionsKeptMax = 100;
/**
 * Maximum number of decisions that all sets of the process cache together: ten topics for each of 20,000 sessions. Short topics take 27 MB then; at most,
 * with one topic of 256 characters for each set, 230 MB. One more empties the oldest cache.
 */
const allDecisionsKeptMax = 200_000;

/** The caches that are not empty, the oldest first. There may be many: a client may have thousands of tokens, each with a set of rules of its own. */
const keeping = new Set<KeptDecisions>();
let allKeptCount = 0;

export interface Decided {
  readonly action: RuleAction;
  readonly groupId: string;
  readonly topic: string;
}

/** The cached decisions of one set of rules. It does not refer to the rules, since it may stay in the list of caches for long after the set. */
export class KeptDecisions {
  /** By action, group and topic. */
  readonly #kept = new Map<RuleAction, Map<string, Map<string, boolean>>>();
  #count = 0;

  find({ action, groupId, topic }: Decided): boolean | undefined {
    return this.#kept.get(action)?.get(groupId)?.get(topic);
  }

  keep({ action, groupId, topic }: Decided, decision: boolean): void {
    if (this.#count >= decisionsKeptMax) this.forget();
    const [first] = keeping;
    if (allKeptCount >= allDecisionsKeptMax && first !== undefined) first.forget();
    const byGroup = this.#kept.get(action) ?? new Map<string, Map<string, boolean>>();
    const byTopic = byGroup.get(groupId) ?? new Map<string, boolean>();
    // Copies, since a topic may be a slice of a request's text, and would keep the whole text in memory.
    this.#kept.set(action, byGroup.set(copyOf(groupId), byTopic.set(copyOf(topic), decision)));
    this.#count += 1;
    allKeptCount += 1;
    keeping.add(this);
  }

  forget(): void {
    this.#kept.clear();
    allKeptCount -= this.#count;
    this.#count = 0;
    keeping.delete(this);
  }
}
