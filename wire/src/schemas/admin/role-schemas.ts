import * as z from "zod";

/** What a rule can allow or deny; docs/access.md explains each. */
export const ruleActions = ["open", "close", "publish", "subscribe", "read", "unsubscribe", "admin"] as const;

/** Maximum number of rules of a role. The first publish of a key to a topic checks each of them. */
export const rulesPerRoleMax = 100;

/** Longest group of a rule, in characters: no group has a longer name. */
const ruleGroupCharactersMax = 64;

/** Longest filter of a rule, in characters, before its variables are replaced. */
const ruleFilterCharactersMax = 256;

/** One rule of a role. This checks only its form: the broker checks what its texts mean. */
export const accessRuleSchema = z
  .strictObject({
    effect: z.enum(["allow", "deny"]).default("allow").describe("A rule that denies wins over all that allow."),
    actions: z.array(z.enum(ruleActions)).min(1).max(ruleActions.length),
    groupId: z.string().min(1).max(ruleGroupCharactersMax).optional().describe("Every group if left out."),
    filter: z
      .string()
      .max(ruleFilterCharactersMax)
      .optional()
      .describe("A topic or pattern, with ${tenant} and ${principal}; every topic if left out."),
  })
  .meta({ title: "AccessRule" });
export type AccessRuleBody = z.output<typeof accessRuleSchema>;

export const roleRulesSchema = z.array(accessRuleSchema).max(rulesPerRoleMax);

export const adminRoleSchema = z
  .strictObject({
    name: z.string(),
    source: z
      .enum(["broker", "file", "store"])
      .describe("Where the role is defined: in every broker, the config file, or the store."),
    rules: roleRulesSchema,
    isDamaged: z
      .boolean()
      .describe("The role's row in the store is damaged: whoever has a key with this role is refused."),
    hidesStored: z.boolean().describe("The store also has a role of this name, which does not count."),
  })
  .meta({ title: "AdminRole" });
export type AdminRole = z.output<typeof adminRoleSchema>;

export const adminRolePageSchema = z
  .strictObject({
    items: z.array(adminRoleSchema),
    next: z.string().optional().describe("The cursor of the next page; absent on the last page."),
  })
  .meta({ title: "AdminRolePage" });

export const adminRoleRemovedSchema = z
  .strictObject({ name: z.string().describe("The role that was removed from the store.") })
  .meta({ title: "AdminRoleRemoved" });
