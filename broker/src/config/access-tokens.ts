import { z } from "zod";
import { namePattern, nameRule } from "../domain/access-rule.ts";
import { consoleLogIn, findLogInProblems, isSafeUrl } from "./console-log-in.ts";

/** Signing algorithms that the settings may allow. All have a public key: with a shared secret, whoever verifies tokens could sign them too. */
const algorithms = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"] as const;

/** Maximum number of token issuers. */
const issuersMax = 20;

const name = z.string().regex(namePattern, `a tenant is ${nameRule}`);
const claim = z.string().min(1).max(256);
const roleNames = z.array(z.string()).max(100);

const issuer = z.strictObject({
  issuer: z.string().min(1).max(1_024),
  audience: z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]).transform((value) => [value].flat()),
  keys: z
    .string()
    .min(1)
    .refine(isKeyPlace, "keys are at an https URL without a password, at an http URL of this machine, or in a file"),
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

/** One issuer of tokens, with its keys and the meaning of its claims. */
export type TokenIssuerConfig = z.output<typeof issuer>;

export const tokenIssuers = z.array(issuer).max(issuersMax).default([]);

/** Whether keys come from a file, or from a URL where nobody can change them in transit: whoever changes them could sign tokens. */
function isKeyPlace(place: string): boolean {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(place)) return !place.includes("\0");
  return isSafeUrl(place);
}

/** Problems of issuers that conflict with each other, or that name unknown roles. */
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
      ...(unknown === undefined ? [] : [`${path}: ${unknown} is not a role`]),
      ...(one.tenant !== undefined && one.tenantClaim !== undefined
        ? [`${path}: give tenant or tenantClaim, not both`]
        : []),
      ...findLogInProblems(one, others).map((problem) => `${path}.logIn: ${problem}`),
      ...(others.some((other) => other.issuer === one.issuer) ? [`${path}: the issuer is there already`] : []),
      ...(hasForeignPrincipals(one, issuers)
        ? [
            `${path}: with several issuers, each needs a tenant of its own; only one may have neither tenant nor tenantClaim`,
          ]
        : []),
      ...(one.tenant !== undefined && others.some(({ tenant }) => tenant === one.tenant)
        ? [`${path}: another issuer has the tenant ${one.tenant}`]
        : []),
    ];
  });
}

/**
 * Whether an issuer's tokens could name principals of another issuer. A single issuer without a tenant is safe: the names of its principals have no slash, but
 * those of a tenant's principals do.
 */
function hasForeignPrincipals(one: TokenIssuerConfig, issuers: readonly TokenIssuerConfig[]): boolean {
  if (issuers.length === 1 || one.tenant !== undefined) return false;
  return one.tenantClaim !== undefined || issuers.some((other) => other !== one && other.tenant === undefined);
}
