import type { ruleActions } from "@stele/wire";
import { coversFilter, overlapsFilter } from "./filter-containment.ts";
import { isTopicFilter, type TopicFilter } from "./topic-filter.ts";

/** What a rule can allow or deny. `read`: getEvent, getProof, exist, state, list. `admin`: what operators do, the chain, and what other principals own. */
export type RuleAction = (typeof ruleActions)[number];

/** One rule as an operator writes it. A filter may contain the levels `${principal}` and `${tenant}`. */
export interface AccessRule {
  readonly effect: "allow" | "deny";
  readonly actions: readonly RuleAction[];
  /** Every group if left out. */
  readonly groupId?: string | undefined;
  /** Every topic if left out, also those that begin with `$`. */
  readonly filter?: string | undefined;
}

/** A rule for one principal: its variables have their values. */
export interface BoundRule extends Omit<AccessRule, "filter"> {
  readonly filter?: TopicFilter | undefined;
}

/** Values of the variables in filters. */
export interface RuleSubject {
  readonly principal: string;
  readonly tenant: string | undefined;
}

/** Group and topic of a requested action. If undefined, a right to some groups or topics is enough; but `admin` then needs a right to all groups. */
export interface RuleScope {
  readonly groupId: string | undefined;
  /** A topic or a pattern, as a client wrote it. */
  readonly topic: string | undefined;
}

const variable = /\$\{(principal|tenant)\}/g;
/** A slash or a wildcard in a value would widen the filter; a leading `$` would select the topics that begin with `$`. */
const plainValue = /^[^/+#$\s][^/+#\s]*$/;

/** Longest value of a variable in a rule's filter, in characters: a name of a principal or a tenant. */
export const variableCharactersMax = 64;

/** Valid names of principals and tenants, from keys, certificates and tokens alike. Such a name is one level of a filter and cannot widen it. */
export const namePattern = new RegExp(`^[0-9A-Za-z._@|:=~-]{1,${variableCharactersMax}}$`);
/** {@link namePattern} in words. */
export const nameRule = `1 to ${variableCharactersMax} letters, digits and characters of . _ @ : = ~ - |`;
/** No principal may have this name: it stands for callers without a credential. */
export const reservedName = "anonymous";

/** Whether a filter is well-formed with the longest values of its variables. A deny rule must not be dropped because its filter becomes too long. */
export function isRuleFilter(text: string): boolean {
  const bound = text.replaceAll(variable, "x".repeat(variableCharactersMax));
  return !bound.includes("${") && isTopicFilter(bound);
}

/** Fills in the variables of the rules for one principal. Drops a rule if the value of a variable is missing or could widen its filter. */
export function bindRules(rules: readonly AccessRule[], subject: RuleSubject): readonly BoundRule[] {
  return rules.flatMap((rule): readonly BoundRule[] => {
    if (rule.filter === undefined) return [{ ...rule, filter: undefined }];
    const filter = bindFilter(rule.filter, subject);
    return filter === undefined ? [] : [{ ...rule, filter }];
  });
}

function bindFilter(text: string, subject: RuleSubject): TopicFilter | undefined {
  const values = { principal: subject.principal, tenant: subject.tenant ?? "" };
  const names = [...text.matchAll(variable)].map(([, name]) => name as keyof typeof values); // The expression has only these.
  if (!names.every((name) => plainValue.test(values[name]))) return undefined;
  const bound = text.replaceAll(variable, (_, name: keyof typeof values) => values[name]);
  return isTopicFilter(bound) ? bound : undefined;
}

/**
 * Whether rules allow an action: one rule allows all of the scope, and none denies a part of it. Nothing is allowed without a rule. A topic
 * that is malformed is allowed only by a rule for every topic.
 */
export function isAllowed(rules: readonly BoundRule[], action: RuleAction, scope: RuleScope): boolean {
  const { topic } = scope;
  const asked: Asked = { ...scope, action, filter: topic !== undefined && isTopicFilter(topic) ? topic : undefined };
  const concerned = rules.filter(({ actions }) => actions.includes(action));
  const denies = concerned.some((rule) => rule.effect === "deny" && touches(rule, asked));
  return !denies && concerned.some((rule) => rule.effect === "allow" && contains(rule, asked));
}

interface Asked extends RuleScope {
  readonly action: RuleAction;
  /** The topic, if it is well-formed. */
  readonly filter: TopicFilter | undefined;
}

/**
 * Whether a rule covers the whole scope. `admin` belongs to no topic: a rule with a filter does not allow it, and only a rule for every group allows it for
 * the whole broker.
 */
function contains(rule: BoundRule, { action, groupId, topic, filter }: Asked): boolean {
  if (action === "admin") return rule.filter === undefined && (rule.groupId === undefined || rule.groupId === groupId);
  const hasGroup = rule.groupId === undefined || groupId === undefined || rule.groupId === groupId;
  if (!hasGroup || rule.filter === undefined || topic === undefined) return hasGroup;
  return filter !== undefined && coversFilter(rule.filter, filter);
}

/**
 * Whether a deny rule concerns a part of the scope. If the scope names no topic or no group, a rule for some topics or groups does not count: the broker
 * asks again for each by name. It does not ask again for `admin`, so every denial of `admin` counts, except for another group.
 */
function touches(rule: BoundRule, { action, groupId, topic, filter }: Asked): boolean {
  if (action === "admin") return rule.groupId === undefined || groupId === undefined || rule.groupId === groupId;
  if (rule.groupId !== undefined && rule.groupId !== groupId) return false;
  if (rule.filter === undefined) return true;
  if (topic === undefined) return false;
  return filter === undefined || overlapsFilter(rule.filter, filter);
}
