import type { RuleAction } from "../../domain/access-rule.ts";
import { tenantOf } from "../../domain/quota.ts";
import { joinTexts } from "../../lib/join-texts.ts";
import type { Caller, Owner, Principal } from "./caller.ts";
import type { ClientCertificate } from "./credential.ts";
import type { KeyRing } from "./key-ring.ts";
import type { Action, Policy, Scope } from "./policy.ts";
import type { RuleSet } from "./rule-set.ts";
import type { TenantNames } from "../../domain/tenant-names.ts";
import { tenantNamesOf } from "./tenant.ts";
import { TokenAuthenticator } from "./token-authenticator.ts";

/** The rule action that grants each action; undefined for an action that everybody may do. */
const ruleActionOf: { readonly [Name in Action]: RuleAction | undefined } = {
  open: "open",
  close: "close",
  publish: "publish",
  subscribe: "subscribe",
  unsubscribe: "unsubscribe",
  read: "read",
  administer: "admin",
  inspect: "admin",
  chain: "admin",
  health: undefined,
};

/** Decides by the rules of keys and tokens. A caller without a valid credential may do only the action `health`. */
export class RulesPolicy implements Policy {
  readonly #keys: KeyRing;
  readonly #tokens: TokenAuthenticator | undefined;

  constructor(keys: KeyRing, tokens: TokenAuthenticator | undefined) {
    this.#keys = keys;
    this.#tokens = tokens;
  }

  authenticate(credential: string | undefined, certificate?: ClientCertificate): Principal | Promise<Principal> {
    const isToken = credential !== undefined && TokenAuthenticator.isToken(credential);
    const found = isToken ? this.#tokens?.authenticate(credential) : undefined;
    return found ?? this.#keys.authenticate(credential, certificate);
  }

  findFault(principal: Principal): string | undefined {
    if (principal.kind === "rejected" && principal.error !== undefined) throw principal.error;
    const isByToken = principal.kind === "known" && principal.token !== undefined;
    if (isByToken) return this.#tokens?.findFault(principal);
    const isByLasting = principal.kind === "known" && principal.keyId === undefined && this.#hasLasting(principal.id);
    return isByLasting ? undefined : this.#keys.findFault(principal);
  }

  findWarning(): string | undefined {
    return joinTexts([this.#keys.findWarning(), this.#tokens?.findWarning()]);
  }

  findTrouble(): string | undefined {
    return this.#keys.findTrouble();
  }

  /** Whatever the rules say, a tenant's principal has no right outside its own topics, nor to administer the broker. */
  allows({ principal }: Caller, action: Action, scope: Scope): boolean {
    const ruleAction = ruleActionOf[action];
    if (ruleAction === undefined) return true;
    if (principal.kind !== "known") return false;
    const names = tenantNamesOf(principal);
    if (names !== undefined && (ruleAction === "admin" || !isOfTenant(names, scope))) return false;
    return principal.rules.allows(ruleAction, scope);
  }

  mayReceive(owner: Owner, scope: Scope): boolean {
    return this.#rulesOf(owner)?.allows("subscribe", scope) ?? true; // Without rules, mayDeliver is false, so nothing is delivered.
  }

  rulesOf(owner: Owner): object | undefined {
    return this.#rulesOf(owner)?.rules;
  }

  mayDeliver(owner: Owner): boolean {
    return this.#keys.isAlive(owner) || this.#hasLasting(owner);
  }

  recall(owner: Owner): Principal {
    const rules = this.#rulesOf(owner);
    if (rules === undefined) return { kind: "rejected", reason: "its owner is not known" };
    return { kind: "known", id: owner, tenant: tenantOf(owner), rules, expiresAt: undefined, keyId: undefined };
  }

  #rulesOf(owner: Owner): RuleSet | undefined {
    return this.#keys.rulesOf(owner) ?? this.#tokens?.lasting.of(owner);
  }

  /** An owner that has or had a key is judged only by its keys: revoking its last key ends all its rights. */
  #hasLasting(owner: Owner): boolean {
    return this.#keys.rulesOf(owner) === undefined && this.#tokens?.lasting.of(owner) !== undefined;
  }
}

function isOfTenant(names: TenantNames, { topic }: Scope): boolean {
  return topic === undefined || names.isWithin(topic);
}
