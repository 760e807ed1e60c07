import { type AccessRule, bindRules } from "../../domain/access-rule.ts";
import { nobody, type Owner } from "./caller.ts";
import { RuleSet } from "./rule-set.ts";
import type { TokenMapping } from "./token-claims.ts";

/** Maximum number of owners whose rules are cached, about 200 bytes each. One more empties the cache. */
const ownersKeptMax = 10_000;

export interface LastingRulesParts {
  readonly mappings: ReadonlyMap<string, TokenMapping>;
  readonly roles: ReadonlyMap<string, readonly AccessRule[]>;
}

/** The rules that the settings give to principals of tokens even without a valid token. */
export class LastingRules {
  readonly #parts: LastingRulesParts;
  readonly #known = new Map<Owner, RuleSet | undefined>();

  constructor(parts: LastingRulesParts) {
    this.#parts = parts;
  }

  /** Undefined if no issuer with lasting roles can name this owner. */
  of(owner: Owner): RuleSet | undefined {
    if (this.#known.has(owner)) return this.#known.get(owner);
    if (this.#known.size >= ownersKeptMax) this.#known.clear();
    const rules = this.#find(owner);
    this.#known.set(owner, rules);
    return rules;
  }

  #find(owner: Owner): RuleSet | undefined {
    if (owner === nobody) return undefined;
    const end = owner.indexOf("/"); // A principal's own name contains no slash.
    const tenant = end < 0 ? undefined : owner.slice(0, end);
    const mapping = [...this.#parts.mappings.values()].find((one) => mayName(one, tenant));
    if (mapping === undefined || mapping.lastingRoles.length === 0) return undefined;
    const rules = mapping.lastingRoles.flatMap((role) => this.#parts.roles.get(role) ?? []);
    return new RuleSet(bindRules(rules, { principal: owner.slice(end + 1), tenant }));
  }
}

/** Whether an issuer's tokens can name principals of a tenant. At most one issuer's tokens can, because no two issuers may have the same tenant. */
function mayName({ tenant, tenantClaim }: TokenMapping, asked: string | undefined): boolean {
  return tenantClaim === undefined ? tenant === asked : asked !== undefined;
}
