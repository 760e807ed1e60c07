import { BrokerError } from "@stele/wire";
import { type AccessRule, bindRules } from "../../domain/access-rule.ts";
import type { ForwardClock } from "../../lib/forward-clock.ts";
import { SharedCalls } from "../../lib/shared-calls.ts";
import {
  type TokenVerdict,
  type TokenVerifier,
  unknownIssuer,
  type VerifiedToken,
} from "../../ports/token-verifier.ts";
import { type Known, type Owner, toOwnerId, type Principal, type Rejected } from "./caller.ts";
import { LastingRules } from "./lasting-rules.ts";
import { RuleSet } from "./rule-set.ts";
import { ClaimsFault, readClaims, type TokenMapping } from "./token-claims.ts";

/** Longest token, in characters. */
const tokenCharactersMax = 12 * 1024;
/** Maximum number of verified tokens in the cache; one more replaces the oldest. */
const tokensKeptMax = 10_000;
/** Maximum number of tokens that are verified at once; further ones are refused as busy. */
const verifyingMax = 1_000;

const tooLong: Rejected = { kind: "rejected", reason: `the token has more than ${tokenCharactersMax} characters` };

/** Three parts in Base64 for URLs (RFC 7515, section 7.1). */
const tokenPattern = /^[\w-]+\.[\w-]+\.[\w-]+$/;

export interface TokenOptions {
  readonly verifier: TokenVerifier;
  /** How to read the claims of tokens, by issuer. */
  readonly mappings: ReadonlyMap<string, TokenMapping>;
}

export interface TokenAuthenticatorParts extends TokenOptions {
  readonly roles: ReadonlyMap<string, readonly AccessRule[]>;
  readonly sha256: (text: string) => string;
  /** The clock that decides whether a token has expired. */
  readonly time: Pick<ForwardClock, "now">;
  /** Called when an issuer has removed a key: its principals may have lost their rights. */
  readonly onChanged: () => void;
}

/** Authenticates callers by signed tokens. Verifies a token once, and caches the result by the token's digest until the token expires. */
export class TokenAuthenticator {
  readonly #parts: TokenAuthenticatorParts;
  /** The rules of principals without a valid token. */
  readonly lasting: LastingRules;
  readonly #known = new Map<string, Known>();
  readonly #verifying = new SharedCalls<string, Known | Rejected>();

  constructor(parts: TokenAuthenticatorParts) {
    this.#parts = parts;
    this.lasting = new LastingRules(parts);
  }

  start(): Promise<void> {
    return this.#parts.verifier.start(this.#parts.onChanged);
  }

  stop(): Promise<void> {
    return this.#parts.verifier.stop();
  }

  /** Whether a credential has the form of a token. */
  static isToken(credential: string): boolean {
    return tokenPattern.test(credential);
  }

  /** Finds the principal of a token; synchronously if the token is cached. */
  authenticate(token: string): Principal | Promise<Principal> {
    if (token.length > tokenCharactersMax) return tooLong;
    const digest = this.#parts.sha256(token);
    const known = this.#known.get(digest);
    if (known !== undefined && this.findFault(known) === undefined) return known;
    this.#drop(digest);
    if (this.#verifying.size >= verifyingMax && !this.#verifying.has(digest))
      return undecided(`${verifyingMax} tokens are being verified`);
    return this.#verifying.run(digest, () => this.#verify(token, digest));
  }

  /** Why a principal with a token has no rights any more; undefined if it has them. */
  findFault({ expiresAt = 0, token }: Known): string | undefined {
    if (token === undefined || expiresAt <= this.#parts.time.now()) return "the token is expired";
    return this.#parts.verifier.trusts(token) ? undefined : "the key that signed the token is not trusted any more";
  }

  findWarning(): string | undefined {
    return this.#parts.verifier.findWarning();
  }

  async #verify(token: string, digest: string): Promise<Known | Rejected> {
    const { verifier, time } = this.#parts;
    const principal = this.#toPrincipal(await verifier.verify(token, time.now()));
    if (principal.kind === "known") this.#remember(digest, principal);
    return principal;
  }

  #toPrincipal(verdict: TokenVerdict): Known | Rejected {
    if (verdict.status === "undecided") return undecided(verdict.reason);
    if (verdict.status === "refused") return { kind: "rejected", reason: verdict.reason };
    try {
      return this.#toKnown(verdict);
    } catch (error) {
      if (error instanceof ClaimsFault) return { kind: "rejected", reason: error.message };
      throw error;
    }
  }

  #toKnown({ issuer, signer, claims, expiresAt }: VerifiedToken): Known {
    const mapping = this.#parts.mappings.get(issuer);
    if (mapping === undefined) throw new ClaimsFault(unknownIssuer);
    const { principal, tenant, roles, rules } = readClaims(claims, mapping);
    const all = [...roles.flatMap((role) => this.#parts.roles.get(role) ?? []), ...rules];
    const id: Owner = toOwnerId(principal, tenant);
    const bound = new RuleSet(bindRules(all, { principal, tenant }));
    return { kind: "known", id, tenant, rules: bound, expiresAt, keyId: undefined, token: { issuer, signer } };
  }

  #remember(digest: string, principal: Known): void {
    if (this.#known.size >= tokensKeptMax) {
      const [oldest = ""] = this.#known.keys();
      this.#drop(oldest);
    }
    this.#known.set(digest, principal);
  }

  /** Also empties the token's cache of decisions. Otherwise the list of all caches would keep these decisions in memory. */
  #drop(digest: string): void {
    this.#known.get(digest)?.rules.renew();
    this.#known.delete(digest);
  }
}

function undecided(details: string): Rejected {
  return { kind: "rejected", reason: details, error: new BrokerError("busy", { details }) };
}
