import { quote, roleRulesSchema, ruleActions } from "@stele/wire";
import { type AccessRule, isRuleFilter } from "./access-rule.ts";

/** The role that every broker has. It allows everything. */
export const adminRole = "admin";

/** The rules of {@link adminRole}. */
export const adminRules: readonly AccessRule[] = [{ effect: "allow", actions: ruleActions }];

/** The rules used for a role that is unknown, or whose row is damaged. They deny everything: the role may have denied something. */
export const noRights: readonly AccessRule[] = [{ effect: "deny", actions: ruleActions }];

/** Maximum number of roles in the config file, and of roles in the store. */
export const rolesMax = 1_000;

const namePattern = /^[0-9A-Za-z._-]{1,64}$/;

/** A role as the store keeps it. */
export interface StoredRole {
  readonly name: string;
  /** Undefined if the role's row is damaged. */
  readonly rules: readonly AccessRule[] | undefined;
}

export function isRoleName(text: string): boolean {
  return namePattern.test(text);
}

/** Describes the problem of a rule that has the right shape; undefined if it has none. */
function findRuleProblem({ filter, actions }: AccessRule): string | undefined {
  if (filter === undefined) return undefined;
  if (!isRuleFilter(filter)) {
    return `.filter: ${quote(filter)} is not a filter; its variables are \${principal} and \${tenant}`;
  }
  return actions.includes("admin") ? ": admin belongs to no topic: give it in a rule without a filter" : undefined;
}

/** Describes the problems of rules, each with its path in the config. */
export function findRuleProblems(rules: readonly AccessRule[], path: string): readonly string[] {
  return rules.flatMap((rule, index) => {
    const problem = findRuleProblem(rule);
    return problem === undefined ? [] : [`${path}[${index}]${problem}`];
  });
}

/** Parses the rules of a role; undefined if the value is malformed. */
export function readRules(value: unknown): readonly AccessRule[] | undefined {
  const parsed = roleRulesSchema.safeParse(value);
  return parsed.success && findRuleProblems(parsed.data, "").length === 0 ? parsed.data : undefined;
}
