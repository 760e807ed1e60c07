import { z } from "zod";
import { namePattern, nameRule } from "../domain/access-rule.ts";
import { consoleLogIn, findLogInProblems, isSafeUrl } from "./console-log-in.ts";

/** Signing algorithms that a broker can be told to accept. All have a public key: with a shared secret, whoever verifies could sign too. */
const algorithms = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"] as const;

/** Maximum number of token issuers. */
const issuersMax = 20;

const name = z.string().regex(namePattern, `a tenant is ${nameRule}`);
const claim = z.string().min(1).max(256);
const roleNames = z.array(z.string()).max(100);

const issuer = z.strictObject({
  issuer: z.string().min(1).max(1_024),
  audience: z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]).transform((value) => [value].flat()),
  keys: z.string().min(1).refine(isKeyPlace, "keys are at an https URL, at an http URL of this machine, or in a file"),
  algorithms: z.array(z.enum(algorithms)).min(1).default(["RS256", "ES256"]),
  principalClaim: claim.default("sub"),
  tenant: name.optional(),
  tenantClaim: claim.optional(),
  rolesClaim: claim.default("roles"),
  roles: z.record(z.string(), roleNames).default({}),
  defaultRoles: roleNames.default([]),
  lastingRoles: roleNames.default([]),
  aclClaim: claim.optional(),
  logIn: consoleLogIn.optional(),
});

/** One issuer of tokens, and what its tokens mean. */
export type TokenIssuerConfig = z.output<typeof issuer>;

export const tokenIssuers = z.array(issuer).max(issuersMax).default([]);

/** Whoever can change keys on their way could sign. */
function isKeyPlace(place: string): boolean {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(place)) return !place.includes("\0");
  return isSafeUrl(place);
}

/** What is wrong with issuers beside each other, and with the roles that they name. */
export function findTokenProblems(
  issuers: readonly TokenIssuerConfig[],
  isRole: (role: string) => boolean,
): readonly string[] {
  return issuers.flatMap((one, index) => {
    const path = `access.tokens[${index}]`;
    const named = [...one.defaultRoles, ...one.lastingRoles, ...Object.values(one.roles).flat()];
    const unknown = named.find((role) => !isRole(role));
    const others = issuers.slice(0, index);
    return [
      ...(unknown === undefined ? [] : [`${path}: ${unknown} is no role`]),
      ...(one.tenant !== undefined && one.tenantClaim !== undefined
        ? [`${path}: give tenant or tenantClaim, not both`]
        : []),
      ...findLogInProblems(one, others).map((problem) => `${path}.logIn: ${problem}`),
      ...(others.some((other) => other.issuer === one.issuer) ? [`${path}: the issuer is there already`] : []),
      ...(hasForeignPrincipals(one, issuers)
        ? [`${path}: with several issuers, each needs a tenant of its own; one alone may have none, and no tenantClaim`]
        : []),
      ...(one.tenant !== undefined && others.some(({ tenant }) => tenant === one.tenant)
        ? [`${path}: another issuer has the tenant ${one.tenant}`]
        : []),
    ];
  });
}

/** Whether an issuer could name principals of another one. Names of principals without a tenant contain no slash. */
function hasForeignPrincipals(one: TokenIssuerConfig, issuers: readonly TokenIssuerConfig[]): boolean {
  if (issuers.length === 1 || one.tenant !== undefined) return false;
  return one.tenantClaim !== undefined || issuers.some((other) => other !== one && other.tenant === undefined);
}
