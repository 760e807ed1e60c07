import { type BoundRule, isAllowed, type RuleAction, type RuleScope } from "../../domain/access-rule.ts";
import { groupIdCharactersMax } from "../../domain/group-id.ts";
import { topicCharactersMax } from "../../domain/topic-name.ts";

/** Maximum number of decisions that a set of rules caches. One more empties the cache. */
const decisionsKeptMax = 100;

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
    const byGroup = this.#kept.get(action) ?? new Map<string, Map<string, boolean>>();
    const byTopic = byGroup.get(groupId) ?? new Map<string, boolean>();
    this.#kept.set(action, byGroup.set(groupId, byTopic.set(topic, decision)));
    this.#keptCount += 1;
  }

  #forget(): void {
    this.#kept.clear();
    this.#keptCount = 0;
  }
}

/** Whether a text is too long for a topic or a group; such texts must not fill the cache. */
function isTooLong({ groupId, topic }: { readonly groupId: string; readonly topic: string }): boolean {
  return topic.length > topicCharactersMax || groupId.length > groupIdCharactersMax;
}
