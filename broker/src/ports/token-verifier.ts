/** A token whose signature, issuer and audience were found right. */
export interface VerifiedToken {
  readonly status: "verified";
  readonly issuer: string;
  /** Thumbprint of the key that signed it. */
  readonly signer: string;
  readonly claims: Readonly<Record<string, unknown>>;
  /** Milliseconds since the epoch; later than the time of the verification. */
  readonly expiresAt: number;
}

/** Why a token is refused, in words for its client; they quote nothing of it. */
export interface RefusedToken {
  readonly status: "refused";
  readonly reason: string;
}

/** Whether the token is right is not known: its issuer's keys were never read, or not for too long. */
export interface UndecidedToken {
  readonly status: "undecided";
  readonly reason: string;
}

export type TokenVerdict = VerifiedToken | RefusedToken | UndecidedToken;

/** Verifies JSON Web Tokens (RFC 7519) by the public keys of their issuers. */
export interface TokenVerifier {
  /** Reads the keys, and goes on reading their changes. `onChanged` is called after keys were removed. Keys that cannot be read do not fail the start. */
  start(onChanged: () => void): Promise<void>;
  stop(): Promise<void>;
  /** `now` in milliseconds since the epoch. Never rejects. */
  verify(token: string, now: number): Promise<TokenVerdict>;
  /** Whether the key that signed is still one of its issuer's. */
  trusts(token: Pick<VerifiedToken, "issuer" | "signer">): boolean;
  /** What the operator has to see to; undefined for nothing. */
  findWarning(): string | undefined;
}
