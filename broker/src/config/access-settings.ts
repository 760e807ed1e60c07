import { quote, roleRulesSchema } from "@stele/wire";
import { z } from "zod";
import { adminRole, findRuleProblems, isRoleName, rolesMax } from "../domain/access-role.ts";
import { type AccessRule, namePattern, nameRule, reservedName } from "../domain/access-rule.ts";
import type { CertificateHolder } from "../domain/certificate-holder.ts";
import { everyOther, type QuotaTable } from "../domain/quota.ts";
import { decodeJson } from "./decode-json.ts";
import { describeIssue } from "./describe-issue.ts";
import { findTokenProblems, type TokenIssuerConfig, tokenIssuers } from "./access-tokens.ts";
import { isListenHost, listenHostRule } from "./server-address.ts";
import { optional, portOrOff, type Setting, type SettingsTable, text, truth } from "./setting.ts";

const section = "Access";

/** Maximum number of names of client certificates. */
const certificatesMax = 10_000;

/** The value of the `access` setting. */
export interface AccessConfig {
  readonly roles: Readonly<Record<string, readonly AccessRule[]>>;
  /** The principal and roles of each client certificate. */
  readonly certificates: readonly CertificateHolder[];
  readonly quotas: QuotaTable;
  /** The issuers whose tokens the broker accepts. */
  readonly tokens: readonly TokenIssuerConfig[];
}

const name = z
  .string()
  .regex(namePattern, `a name is ${nameRule}`)
  .refine((text) => text !== reservedName, `${reservedName} is whoever gives no credential`);

const certificate = z.strictObject({
  name: z
    .string()
    .regex(
      /^(DNS|URI|email|IP Address):[^\s"]{1,512}$/,
      "a name begins with its kind, such as DNS:shop.example or URI:spiffe://example/shop",
    ),
  principal: name,
  tenant: name.optional(),
  roles: z.array(z.string()).min(1),
});

const ownerName = z
  .string()
  .refine(isOwnerName, "a principal is a name such as shop, or tenant and name such as acme/shop");
const amount = z.int().min(1).max(1_000_000_000);
const quota = z.strictObject({
  publishesPerSecond: amount.optional(),
  bytesPerSecond: amount.optional(),
  connections: amount.optional(),
  callbacksPerSecond: amount.optional(),
  callbackHosts: amount.optional(),
  subscriptions: amount.optional(),
  sessions: amount.optional(),
});
const tenantQuota = quota.extend({ topics: amount.optional() });

function isOwnerName(text: string): boolean {
  const names = text.split("/");
  return names.length <= 2 && names.every((part) => namePattern.test(part));
}

function quotasOf<One extends z.ZodType>(named: z.ZodType<string>, one: One) {
  const key = z.union([z.literal(everyOther), named]) as z.ZodType<string, string>; // Both schemas accept only strings.
  return z.record(key, one).default({});
}

const shape = z.strictObject({
  roles: z
    .record(
      z.string().refine(isRoleName, "a role's name is 1 to 64 letters, digits, dots, hyphens or underscores"),
      roleRulesSchema,
    )
    .refine((roles) => Object.keys(roles).length <= rolesMax, `more than ${rolesMax} roles`)
    .refine(
      (roles) => !Object.hasOwn(roles, adminRole),
      `the role ${adminRole} is built in and allows everything: choose another name`,
    )
    .default({}),
  certificates: z.array(certificate).max(certificatesMax).default([]),
  quotas: z
    .strictObject({ tenants: quotasOf(name, tenantQuota), principals: quotasOf(ownerName, quota) })
    .default({ tenants: {}, principals: {} }),
  tokens: tokenIssuers,
});

/** The `access` setting: an object in a config file, the same as JSON text elsewhere. */
const accessSetting: Setting<AccessConfig | undefined> = {
  section,
  description:
    "Turns access on: every call then needs a key (`stele key create`) or a token, and the rules of its roles say what it may do; see [access.md](access.md).",
  default: undefined,
  defaultText: "off: whoever reaches the broker may do everything",
  rule: 'a JSON object such as {"roles": {"producer": [{"actions": ["publish"], "filter": "orders/#"}]}}',
  usesSchemaMessages: true,
  schema: z.unknown().transform((value, context): AccessConfig | undefined => {
    const parsed = shape.safeParse(value);
    const problems = parsed.success
      ? findProblems(parsed.data)
      : parsed.error.issues.map((issue) => describeIssue(issue, value, "access"));
    for (const message of problems) context.addIssue({ code: "custom", message });
    return parsed.success ? parsed.data : undefined;
  }),
  decode: decodeJson,
};

/** Settings of access, the audit log and the operators' listener. */
export const accessSettings = {
  access: accessSetting,
  allowAnonymous: truth({
    section,
    description:
      "Lets a broker without `access` listen on an address that other machines reach: whoever reaches it may do everything. The broker logs a warning at each start.",
    default: false,
  }),
  auditLog: text({
    section,
    description:
      "Where to write who changed something, who was refused, and what operators looked at, as one JSON object per line: the path of a file, or `stdout`; see [access.md](access.md#audit-log).",
    default: "",
    defaultText: "empty: nowhere",
    rule: "empty, stdout or a path",
    check: (value) => !value.includes("\0"),
  }),
  adminHost: text({
    section,
    description: "Address of the operators' listener; see `adminPort`.",
    default: "127.0.0.1",
    rule: listenHostRule,
    check: isListenHost,
  }),
  adminPort: optional(
    portOrOff({
      section,
      description:
        "Port of a listener for operators; only this listener serves `/metrics`, `/admin` and `/chain`. 0 picks a free port. `off`: the broker serves these pages at `port` if `access` is off, and not at all if it is on.",
      default: "off",
    }),
    "`off` without `access`, else 8081",
  ),
} as const satisfies SettingsTable;

function findProblems({ roles, certificates, tokens }: AccessConfig): readonly string[] {
  const isRole = (role: string): boolean => role === adminRole || Object.hasOwn(roles, role);
  return [
    ...Object.entries(roles).flatMap(([role, rules]) => findRuleProblems(rules, `access.roles.${role}`)),
    ...findCertificateProblems(roles, certificates),
    ...findTokenProblems(tokens, isRole),
  ];
}

function findCertificateProblems(
  roles: AccessConfig["roles"],
  certificates: AccessConfig["certificates"],
): readonly string[] {
  const names = certificates.map((holder) => holder.name);
  return certificates.flatMap(({ name: own, roles: given }, index) => {
    const path = `access.certificates[${index}]`;
    const unknown = given.filter((role) => role !== adminRole && !Object.hasOwn(roles, role));
    const problems = unknown.map((role) => `${path}.roles: there is no role ${quote(role)}`);
    return names.indexOf(own) === index ? problems : [...problems, `${path}.name: ${quote(own)} is there twice`];
  });
}
