import { generateKeyPairSync, type JsonWebKey, type KeyObject, sign } from "node:crypto";

/** An issuer of tokens with one key. It signs without the library that the broker verifies with. */
export class TokenIssuer {
  readonly name: string;
  readonly kid: string;
  readonly jwk: JsonWebKey;
  readonly #privateKey: KeyObject;

  constructor(name: string, kid = "one") {
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    this.name = name;
    this.kid = kid;
    this.jwk = { ...publicKey.export({ format: "jwk" }), kid, use: "sig" };
    this.#privateKey = privateKey;
  }

  /** A token of this issuer (RFC 7515, section 7.1; RFC 7518, section 3.4). */
  sign(claims: Readonly<Record<string, unknown>>): string {
    const head = [
      { alg: "ES256", kid: this.kid },
      { iss: this.name, aud: "stele", ...claims },
    ]
      .map(toPart)
      .join(".");
    const signature = sign("sha256", Buffer.from(head), { key: this.#privateKey, dsaEncoding: "ieee-p1363" });
    return `${head}.${signature.toString("base64url")}`;
  }
}

/** The JSON Web Key Set of these issuers. */
export function toKeySet(...issuers: readonly TokenIssuer[]): string {
  return JSON.stringify({ keys: issuers.map(({ jwk }) => jwk) });
}

/** Encodes a part of a JSON Web Token. */
export function toPart(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
