import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from "jose";

type PrivateKey = Awaited<ReturnType<typeof generateKeyPair>>["privateKey"];

/** An issuer of tokens with a key of its own. */
export class TestIssuer {
  readonly name: string;
  readonly kid: string;
  readonly jwk: JWK;
  readonly #privateKey: PrivateKey;

  private constructor(name: string, jwk: JWK, privateKey: PrivateKey) {
    this.name = name;
    this.jwk = jwk;
    this.kid = String(jwk.kid);
    this.#privateKey = privateKey;
  }

  static async create(name: string, kid = "one"): Promise<TestIssuer> {
    const { publicKey, privateKey } = await generateKeyPair("ES256");
    return new TestIssuer(name, { ...(await exportJWK(publicKey)), kid, use: "sig" }, privateKey);
  }

  /** Signs a token with these claims and header fields, which override the defaults. */
  sign(claims: JWTPayload, header: Readonly<Record<string, unknown>> = {}): Promise<string> {
    return new SignJWT({ iss: this.name, aud: "stele", sub: "somebody", ...claims })
      .setProtectedHeader({ alg: "ES256", kid: this.kid, ...header })
      .sign(this.#privateKey);
  }
}

/** A JWK set with the keys of these issuers. */
export function toKeySet(...issuers: readonly TestIssuer[]): string {
  return JSON.stringify({ keys: issuers.map(({ jwk }) => jwk) });
}
