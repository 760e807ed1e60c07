import { type BoundRule, isAllowed, type RuleAction, type RuleScope } from "../../domain/access-rule.ts";
import { groupIdCharactersMax } from "../../domain/group-id.ts";
import { topicCharactersMax } from "../../domain/topic-name.ts";
import { KeptDecisions } from "./kept-decisions.ts";

/** The rules of one principal. Caches its latest decisions, because every publish needs one. */
export class RuleSet {
  readonly #bind: () => readonly BoundRule[];
  #bound: readonly BoundRule[] | undefined;
  readonly #kept = new KeptDecisions();

  /** For rules that can change, pass a function. The set calls it on the first use and after each {@link renew}. */
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
    this.#kept.forget();
  }

  allows(action: RuleAction, scope: RuleScope): boolean {
    const { groupId, topic } = scope;
    if (topic === undefined || groupId === undefined || isTooLong({ groupId, topic })) {
      return isAllowed(this.rules, action, scope);
    }
    const asked = { action, groupId, topic };
    const kept = this.#kept.find(asked);
    if (kept !== undefined) return kept;
    const decision = isAllowed(this.rules, action, scope);
    this.#kept.keep(asked, decision);
    return decision;
  }
}

/** Whether a text is too long for a topic or a group; such texts must not fill the cache. */
function isTooLong({ groupId, topic }: { readonly groupId: string; readonly topic: string }): boolean {
  return topic.length > topicCharactersMax || groupId.length > groupIdCharactersMax;
}
