import type { RuleAction } from "../../domain/access-rule.ts";
import type { Caller, Owner, Principal } from "./caller.ts";
import type { ClientCertificate } from "./credential.ts";
import type { KeyRing } from "./key-ring.ts";
import type { Action, Policy, Scope } from "./policy.ts";

/** The action of a rule that gives each right; undefined for what everybody may do. */
const ruleActionOf: { readonly [Name in Action]: RuleAction | undefined } = {
  open: "open",
  close: "close",
  publish: "publish",
  subscribe: "subscribe",
  unsubscribe: "unsubscribe",
  read: "read",
  administer: "admin",
  chain: "admin",
  health: undefined,
};

/** Rights by keys and the rules of their roles. Nothing is allowed without a key, but to ask whether the broker serves. */
export class RulesPolicy implements Policy {
  readonly #keys: KeyRing;

  constructor(keys: KeyRing) {
    this.#keys = keys;
  }

  authenticate(credential: string | undefined, certificate?: ClientCertificate): Principal {
    return this.#keys.authenticate(credential, certificate);
  }

  findFault(principal: Principal): string | undefined {
    return this.#keys.findFault(principal);
  }

  findTrouble(): string | undefined {
    return this.#keys.findTrouble();
  }

  allows({ principal }: Caller, action: Action, scope: Scope): boolean {
    const ruleAction = ruleActionOf[action];
    return ruleAction === undefined || (principal.kind === "known" && principal.rules.allows(ruleAction, scope));
  }

  mayReceive(owner: Owner, scope: Scope): boolean {
    return this.#keys.rulesOf(owner)?.allows("subscribe", scope) ?? true; // Then nothing is delivered at all.
  }

  mayDeliver(owner: Owner): boolean {
    return this.#keys.isAlive(owner);
  }

  recall(owner: Owner): Principal {
    return this.#keys.recall(owner);
  }
}
