import { quote, roleRulesSchema, ruleActions } from "@stele/wire";
import { type AccessRule, isRuleFilter } from "./access-rule.ts";

/** The role that every broker has: everything is allowed. */
export const adminRole = "admin";

/** The rules of that role. */
export const adminRules: readonly AccessRule[] = [{ effect: "allow", actions: ruleActions }];

/** The rules of a role that is nowhere, or damaged: it may have been one that denies. */
export const noRights: readonly AccessRule[] = [{ effect: "deny", actions: ruleActions }];

/** Maximum number of roles of the config file, and of roles of the store. */
export const rolesMax = 1_000;

const namePattern = /^[0-9A-Za-z._-]{1,64}$/;

/** A role of the store. */
export interface StoredRole {
  readonly name: string;
  /** Undefined where its row is damaged. */
  readonly rules: readonly AccessRule[] | undefined;
}

export function isRoleName(text: string): boolean {
  return namePattern.test(text);
}

/** What is wrong with a rule of the right shape; undefined for nothing. */
function findRuleProblem({ filter, actions }: AccessRule): string | undefined {
  if (filter === undefined) return undefined;
  if (!isRuleFilter(filter)) {
    return `.filter: ${quote(filter)} is not a filter; its variables are \${principal} and \${tenant}`;
  }
  return actions.includes("admin") ? ": admin is of no topic: give it in a rule without a filter" : undefined;
}

/** The problems of rules, each with its place. */
export function findRuleProblems(rules: readonly AccessRule[], path: string): readonly string[] {
  return rules.flatMap((rule, index) => {
    const problem = findRuleProblem(rule);
    return problem === undefined ? [] : [`${path}[${index}]${problem}`];
  });
}

/** The rules that a value is; undefined where it is none that a role can have. */
export function readRules(value: unknown): readonly AccessRule[] | undefined {
  const parsed = roleRulesSchema.safeParse(value);
  return parsed.success && findRuleProblems(parsed.data, "").length === 0 ? parsed.data : undefined;
}
