import type { ruleActions } from "@stele/wire";
import { coversFilter, overlapsFilter } from "./filter-containment.ts";
import { isTopicFilter, type TopicFilter } from "./topic-filter.ts";

/** What a rule can allow or deny. `read`: getEvent, getProof, exist, state, list. `admin`: the operators' pages, the chain, and what others own. */
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

/** What the variables of filters stand for. */
export interface RuleSubject {
  readonly principal: string;
  readonly tenant: string | undefined;
}

/** What a right is asked for. Undefined: no single group or topic, so that a right to some of them is enough. */
export interface RuleScope {
  readonly groupId: string | undefined;
  /** A topic or a pattern, as a client wrote it. */
  readonly topic: string | undefined;
}

const variable = /\$\{(principal|tenant)\}/g;
/** A value with a slash or a wildcard would widen the filter; one in front of which `$` stands would name another tree. */
const plainValue = /^[^/+#$\s][^/+#\s]*$/;

/** Longest value of a variable, in characters. */
export const variableCharactersMax = 64;

/** Names of principals and tenants, of keys, certificates and tokens alike: what cannot widen a filter, and stays one level of it. */
export const namePattern = new RegExp(`^[0-9A-Za-z._@|:=~-]{1,${variableCharactersMax}}$`);
/** What {@link namePattern} takes, for people. */
export const nameRule = `1 to ${variableCharactersMax} letters, digits and characters of . _ @ : = ~ - |`;
/** No principal's name: it owns what was made without a credential. */
export const reservedName = "anonymous";

/** Whether a filter with variables is well-formed whatever their values are: a rule that denies must not be lost, because it gets too long. */
export function isRuleFilter(text: string): boolean {
  const bound = text.replaceAll(variable, "x".repeat(variableCharactersMax));
  return !bound.includes("${") && isTopicFilter(bound);
}

/** The rules of one principal. A rule whose variables have no plain value is left out. */
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
 * that is not well-formed is allowed only by a rule for every topic.
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
  /** The topic where it is well-formed. */
  readonly filter: TopicFilter | undefined;
}

/** `admin` is not of a topic: a rule with a filter does not give it, and only one for every group gives it for the whole broker. */
function contains(rule: BoundRule, { action, groupId, topic, filter }: Asked): boolean {
  if (action === "admin") return rule.filter === undefined && (rule.groupId === undefined || rule.groupId === groupId);
  const hasGroup = rule.groupId === undefined || groupId === undefined || rule.groupId === groupId;
  if (!hasGroup || rule.filter === undefined || topic === undefined) return hasGroup;
  return filter !== undefined && coversFilter(rule.filter, filter);
}

/**
 * Where the scope names no topic or no group, a denial of some does not count: those are asked for again by name. `admin` is never asked for again, so
 * any denial counts that is not of another group.
 */
function touches(rule: BoundRule, { action, groupId, topic, filter }: Asked): boolean {
  if (action === "admin") return rule.groupId === undefined || groupId === undefined || rule.groupId === groupId;
  if (rule.groupId !== undefined && rule.groupId !== groupId) return false;
  if (rule.filter === undefined) return true;
  if (topic === undefined) return false;
  return filter === undefined || overlapsFilter(rule.filter, filter);
}
