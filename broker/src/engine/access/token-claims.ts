import { ruleActions } from "@stele/wire";
import {
  type AccessRule,
  isRuleFilter,
  namePattern,
  reservedName,
  variableCharactersMax,
} from "../../domain/access-rule.ts";

/** How to read the claims of an issuer's tokens. */
export interface TokenMapping {
  /** The claim that names the principal. */
  readonly principalClaim: string;
  /** The tenant of all the issuer's principals; undefined if `tenantClaim` names it, or if they have none. */
  readonly tenant: string | undefined;
  readonly tenantClaim: string | undefined;
  /** The claim with a list of texts, or with one text of several words. */
  readonly rolesClaim: string;
  /** The broker's roles for each text of `rolesClaim`. Other texts give no role. */
  readonly roles: ReadonlyMap<string, readonly string[]>;
  /** Roles of every principal with a token of the issuer. */
  readonly defaultRoles: readonly string[];
  /** Roles of every principal of the issuer even without a valid token: for callbacks and wills. */
  readonly lastingRoles: readonly string[];
  /** The claim with a list of rules; undefined if tokens bring no rules. */
  readonly aclClaim: string | undefined;
}

/** The principal that a token names, and its rights. */
export interface TokenSubject {
  readonly principal: string;
  readonly tenant: string | undefined;
  readonly roles: readonly string[];
  readonly rules: readonly AccessRule[];
}

/** Maximum number of rules in one token. */
const aclRulesMax = 100;

/** The claims are malformed: they name no principal, or contain rules that cannot be read. */
export class ClaimsFault extends Error {
  override readonly name = "ClaimsFault";
}

/** Reads the claims of a token. @throws ClaimsFault with a message for the client. */
export function readClaims(claims: Readonly<Record<string, unknown>>, mapping: TokenMapping): TokenSubject {
  const principal = readName(claims, mapping.principalClaim);
  const tenant =
    mapping.tenant ?? (mapping.tenantClaim === undefined ? undefined : readName(claims, mapping.tenantClaim));
  const named = readTexts(findClaim(claims, mapping.rolesClaim)).flatMap((text) => mapping.roles.get(text) ?? []);
  const roles = [...new Set([...mapping.defaultRoles, ...named])];
  return { principal, tenant, roles, rules: readRules(claims, mapping.aclClaim) };
}

function readName(claims: Readonly<Record<string, unknown>>, claim: string): string {
  const name = findClaim(claims, claim);
  if (typeof name === "string" && namePattern.test(name) && name !== reservedName) return name;
  throw new ClaimsFault(`the token's claim ${claim} is not a name of up to ${variableCharactersMax} plain characters`);
}

/** A claim by its name, or by a path with dots, such as `realm_access.roles`. */
function findClaim(claims: Readonly<Record<string, unknown>>, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  let value: unknown = claims;
  for (const part of name.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[part]; // It has this own property.
  }
  return value;
}

function readTexts(value: unknown): readonly string[] {
  if (typeof value === "string") return value.split(" ");
  return Array.isArray(value) ? value.filter((text) => typeof text === "string") : [];
}

/** A token with a rule that cannot be read is refused: that rule may be one that denies. */
function readRules(claims: Readonly<Record<string, unknown>>, claim: string | undefined): readonly AccessRule[] {
  const value = claim === undefined ? undefined : findClaim(claims, claim);
  if (claim === undefined || value === undefined) return [];
  const rules = Array.isArray(value) && value.length <= aclRulesMax ? value.map(toRule) : [undefined];
  const known = rules.filter((rule) => rule !== undefined);
  if (known.length === rules.length) return known;
  throw new ClaimsFault(`the token's claim ${claim} is not a list of up to ${aclRulesMax} rules`);
}

const ruleFields = new Set(["effect", "actions", "groupId", "filter"]);
const knownActions = new Set<unknown>(ruleActions);

function toRule(value: unknown): AccessRule | undefined {
  if (typeof value !== "object" || value === null || Object.keys(value).some((key) => !ruleFields.has(key))) {
    return undefined;
  }
  const { effect = "allow", actions, groupId, filter } = value as Readonly<Record<string, unknown>>; // An object that has only these fields.
  if (effect !== "allow" && effect !== "deny") return undefined;
  if (!Array.isArray(actions) || actions.length === 0 || !actions.every(isAction)) return undefined;
  if (!isOptionalText(groupId) || !isOptionalText(filter)) return undefined;
  return filter === undefined || isRuleFilter(filter) ? { effect, actions, groupId, filter } : undefined;
}

function isAction(value: unknown): value is AccessRule["actions"][number] {
  return knownActions.has(value);
}

function isOptionalText(value: unknown): value is string | undefined {
  return value === undefined || (typeof value === "string" && value !== "");
}
