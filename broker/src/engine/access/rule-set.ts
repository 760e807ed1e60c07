import { type BoundRule, isAllowed, type RuleAction, type RuleScope } from "../../domain/access-rule.ts";
import { groupIdCharactersMax } from "../../domain/group-id.ts";
import { topicCharactersMax } from "../../domain/topic-name.ts";

/** Decisions that one set of rules remembers. A client that publishes to more topics has them decided again. */
const decisionsKeptMax = 100;

/** The rules of one principal. It remembers its latest decisions: a publish asks each time. */
export class RuleSet {
  readonly rules: readonly BoundRule[];
  readonly #kept = new Map<string, boolean>();

  constructor(rules: readonly BoundRule[]) {
    this.rules = rules;
  }

  allows(action: RuleAction, scope: RuleScope): boolean {
    const { groupId, topic } = scope;
    if (topic === undefined || groupId === undefined || isTooLong({ groupId, topic })) {
      return isAllowed(this.rules, action, scope);
    }
    const key = `${action} ${groupId}\n${topic}`;
    const kept = this.#kept.get(key);
    if (kept !== undefined) return kept;
    const decision = isAllowed(this.rules, action, scope);
    if (this.#kept.size >= decisionsKeptMax) this.#kept.clear();
    this.#kept.set(key, decision);
    return decision;
  }
}

/** Such texts name no topic and no group, and must not fill the memory. */
function isTooLong({ groupId, topic }: { readonly groupId: string; readonly topic: string }): boolean {
  return topic.length > topicCharactersMax || groupId.length > groupIdCharactersMax;
}
