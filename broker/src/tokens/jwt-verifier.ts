import { decodeJwt, decodeProtectedHeader, errors, type JWTVerifyResult, jwtVerify } from "jose";
import { joinTexts } from "../lib/join-texts.ts";
import {
  type RefusedToken,
  type TokenVerdict,
  type TokenVerifier,
  unknownIssuer,
  type VerifiedToken,
} from "../ports/token-verifier.ts";
import { Issuer, type IssuerDependencies, type IssuerOptions } from "./issuer.ts";
import type { IssuerKey } from "./issuer-keys.ts";

/** How far the clock of an issuer may be ahead of ours. */
const notBeforeToleranceSeconds = 60;
/** Maximum number of keys of a token's type to try for it. Each costs a signature check, and anybody can make tokens that fit none. */
const candidatesMax = 8;

const unfit = "no key of the token's issuer fits the token's signature";
const unfitOfFirst = `none of the first ${candidatesMax} keys of the issuer fits the token's signature; give the keys of the issuer's set, and its tokens, a kid`;

/** Verifies tokens by `jose`. Whatever a token's header says, only the configured algorithms and the issuer's own keys count. */
export class JwtVerifier implements TokenVerifier {
  readonly #issuers: ReadonlyMap<string, Issuer>;

  constructor(issuers: readonly IssuerOptions[], parts: IssuerDependencies) {
    this.#issuers = new Map(issuers.map((options) => [options.issuer, new Issuer(options, parts)]));
  }

  async start(onChanged: () => void): Promise<void> {
    await Promise.all([...this.#issuers.values()].map((issuer) => issuer.start(onChanged)));
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#issuers.values()].map((issuer) => issuer.stop()));
  }

  trusts({ issuer, signer }: Pick<VerifiedToken, "issuer" | "signer">): boolean {
    return this.#issuers.get(issuer)?.trusts(signer) === true;
  }

  findWarning(): string | undefined {
    return joinTexts([...this.#issuers.values()].map((issuer) => issuer.findWarning()));
  }

  async verify(token: string, now: number): Promise<TokenVerdict> {
    const read = readUnverified(token);
    const issuer = read && this.#issuers.get(read.issuer);
    if (read === undefined || issuer === undefined) return refuse(unknownIssuer);
    const candidates = await issuer.candidates(read.kid);
    const fault = issuer.findFault();
    if (fault !== undefined) return undecided(fault);
    if (candidates === undefined) return undecided("too many tokens wait for new keys of the issuer");
    let tried = 0;
    let isOneLeft = false;
    for (const key of candidates) {
      if (tried === candidatesMax) {
        isOneLeft ||= await isOfType(key, token);
        continue;
      }
      const verdict = await verifyWith(key, { token, now, issuer: issuer.options });
      if (typeof verdict === "object") return verdict;
      if (verdict === "another key") tried += 1;
    }
    // A key without an identifier fits any token, so only a key with the token's own identifier shows that the token is wrong.
    const isKeyKnown = read.kid !== undefined && candidates.some(({ kid }) => kid === read.kid);
    const faultOfUnknown = isKeyKnown ? undefined : issuer.findFaultOfUnknown();
    return faultOfUnknown === undefined ? refuse(isOneLeft ? unfitOfFirst : unfit) : undecided(faultOfUnknown);
  }
}

interface Unverified {
  readonly issuer: string;
  readonly kid: string | undefined;
}

/** The issuer and key identifier that the token claims; undefined if it is not a token or names no issuer. */
function readUnverified(token: string): Unverified | undefined {
  try {
    const { iss } = decodeJwt(token);
    const { kid } = decodeProtectedHeader(token);
    return iss === undefined ? undefined : { issuer: iss, kid };
  } catch {
    return undefined;
  }
}

/** Whether a key is of the type of the token's algorithm. */
async function isOfType(key: IssuerKey, token: string): Promise<boolean> {
  try {
    const { alg } = decodeProtectedHeader(token);
    await key.lookup({ alg: alg ?? "" });
    return true;
  } catch {
    return false;
  }
}

interface Verification {
  readonly token: string;
  readonly now: number;
  readonly issuer: IssuerOptions;
}

/** How a key that has not signed a token differs from the one that has. Another key of the issuer may have signed it. */
type Misfit = "another type" | "another key";

/** Verifies a token with one key. */
async function verifyWith(key: IssuerKey, { token, now, issuer }: Verification): Promise<TokenVerdict | Misfit> {
  try {
    const { payload } = await jwtVerify(token, key.lookup, {
      algorithms: [...issuer.algorithms],
      issuer: issuer.issuer,
      audience: [...issuer.audience],
      requiredClaims: ["exp"],
      clockTolerance: notBeforeToleranceSeconds,
      currentDate: new Date(now),
    });
    return toVerified(payload, { now, issuer: issuer.issuer, signer: key.thumbprint });
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey) return "another type";
    if (error instanceof errors.JWSSignatureVerificationFailed) return "another key";
    return refuse(toReason(error));
  }
}

/** Refuses an expired token at once: the clock tolerance is only for tokens that are not valid yet. */
function toVerified(
  claims: JWTVerifyResult["payload"],
  { now, ...by }: { readonly now: number; readonly issuer: string; readonly signer: string },
): VerifiedToken | RefusedToken {
  const expiresAt = (claims.exp ?? 0) * 1000;
  return expiresAt > now ? { status: "verified", ...by, claims, expiresAt } : refuse("the token is expired");
}

function undecided(reason: string): TokenVerdict {
  return { status: "undecided", reason };
}

function refuse(reason: string): RefusedToken {
  return { status: "refused", reason };
}

const wrongClaims: Readonly<Record<string, string>> = {
  aud: "the token is for another audience",
  exp: "the token does not say when it expires",
  nbf: "the token is not valid yet",
};

function toReason(error: unknown): string {
  if (error instanceof errors.JWTExpired) return "the token is expired";
  if (error instanceof errors.JWTClaimValidationFailed)
    return wrongClaims[error.claim] ?? "a claim of the token is wrong";
  if (error instanceof errors.JOSEAlgNotAllowed) return "the token's algorithm is not allowed";
  return "the token is malformed";
}
