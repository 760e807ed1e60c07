/** A token whose signature, issuer and audience are valid. */
export interface VerifiedToken {
  readonly status: "verified";
  readonly issuer: string;
  /** Thumbprint of the key that signed the token. */
  readonly signer: string;
  readonly claims: Readonly<Record<string, unknown>>;
  /** Milliseconds since the epoch; later than the time of the verification. */
  readonly expiresAt: number;
}

/** Why a token is refused, in words for its client that do not quote the token. */
export interface RefusedToken {
  readonly status: "refused";
  readonly reason: string;
}

/** Reason to refuse a token whose issuer is not configured. */
export const unknownIssuer = "the token is of no issuer that the broker trusts";

/** A token that cannot be verified now: the keys of its issuer were never read, or too long ago. */
export interface UndecidedToken {
  readonly status: "undecided";
  readonly reason: string;
}

export type TokenVerdict = VerifiedToken | RefusedToken | UndecidedToken;

/** Verifies JSON Web Tokens (RFC 7519) by the public keys of their issuers. */
export interface TokenVerifier {
  /**
   * Reads the keys, and keeps reading their changes. Calls `onChanged` when tokens are no longer trusted: their keys were removed, or read too long ago.
   * Keys that cannot be read do not fail the start.
   */
  start(onChanged: () => void): Promise<void>;
  stop(): Promise<void>;
  /** `now` in milliseconds since the epoch. Never rejects. */
  verify(token: string, now: number): Promise<TokenVerdict>;
  /** Whether the issuer still has the key that signed the token; also false if its keys were last read too long ago. */
  trusts(token: Pick<VerifiedToken, "issuer" | "signer">): boolean;
  /** A problem for the operator to solve; undefined if there is none. */
  findWarning(): string | undefined;
}
