import { type BoundRule, isAllowed, type RuleAction, type RuleScope } from "../../domain/access-rule.ts";
import { groupIdCharactersMax } from "../../domain/group-id.ts";
import { topicCharactersMax } from "../../domain/topic-name.ts";
import { copyOf } from "../../lib/copy-of.ts";

/** Maximum number of decisions that a set of rules caches. One more empties the cache. */
const decisionsKeptMax = 100;
/** Maximum number of decisions that all sets cache together, about 500 bytes each. One more empties the cache of the set that began its cache first. */
const allDecisionsKeptMax = 100_000;
/** Maximum number of sets that cache decisions. One more empties the cache of the set that began its cache first. */
const setsKeptMax = 10_000;

/** The sets that cache decisions, in the order in which they began: a client may have thousands of tokens, each with a set of its own. */
const keeping = new Set<RuleSet>();
let allKeptCount = 0;

interface Decided {
  readonly action: RuleAction;
  readonly groupId: string;
  readonly topic: string;
}

/** The rules of one principal. Caches its latest decisions, because every publish needs one. */
export class RuleSet {
  readonly #bind: () => readonly BoundRule[];
  #bound: readonly BoundRule[] | undefined;
  /** Cached decisions by action, group and topic. */
  readonly #kept = new Map<RuleAction, Map<string, Map<string, boolean>>>();
  #keptCount = 0;

  /** Rules that can change are given by a function, which is called on the first use and after each {@link renew}. */
  constructor(rules: readonly BoundRule[] | (() => readonly BoundRule[])) {
    this.#bind = typeof rules === "function" ? rules : () => rules;
  }

  get rules(): readonly BoundRule[] {
    this.#bound ??= this.#bind();
    return this.#bound;
  }

  /** Call it when the rules have changed: from now on, the set decides by the new ones. */
  renew(): void {
    this.#bound = undefined;
    this.#forget();
  }

  allows(action: RuleAction, scope: RuleScope): boolean {
    const { groupId, topic } = scope;
    if (topic === undefined || groupId === undefined || isTooLong({ groupId, topic })) {
      return isAllowed(this.rules, action, scope);
    }
    const kept = this.#kept.get(action)?.get(groupId)?.get(topic);
    if (kept !== undefined) return kept;
    const decision = isAllowed(this.rules, action, scope);
    this.#keep({ action, groupId, topic }, decision);
    return decision;
  }

  #keep({ action, groupId, topic }: Decided, decision: boolean): void {
    if (this.#keptCount >= decisionsKeptMax) this.#forget();
    const [first] = keeping;
    const isFull = allKeptCount >= allDecisionsKeptMax || (keeping.size >= setsKeptMax && !keeping.has(this));
    if (isFull && first !== undefined) first.#forget();
    const byGroup = this.#kept.get(action) ?? new Map<string, Map<string, boolean>>();
    const byTopic = byGroup.get(groupId) ?? new Map<string, boolean>();
    // Copies: a topic may be a part of the text of a request, which it would keep in memory.
    this.#kept.set(action, byGroup.set(copyOf(groupId), byTopic.set(copyOf(topic), decision)));
    this.#keptCount += 1;
    allKeptCount += 1;
    keeping.add(this);
  }

  #forget(): void {
    this.#kept.clear();
    allKeptCount -= this.#keptCount;
    this.#keptCount = 0;
    keeping.delete(this);
  }
}

/** Whether a text is too long for a topic or a group; such texts must not fill the cache. */
function isTooLong({ groupId, topic }: { readonly groupId: string; readonly topic: string }): boolean {
  return topic.length > topicCharactersMax || groupId.length > groupIdCharactersMax;
}
