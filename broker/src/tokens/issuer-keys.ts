import { createHash, createPublicKey } from "node:crypto";
import { createLocalJWKSet, type JWK } from "jose";

/** Maximum number of keys of one issuer; a set with more is refused. */
const keysMax = 100;
/** Smallest modulus of an RSA key, in bytes (RFC 7518, section 3.3). */
const rsaBytesMin = 256;
/** Types of keys that may verify tokens. */
const asymmetricTypes: ReadonlySet<string | undefined> = new Set(["RSA", "EC", "OKP"]);

export type KeyLookup = (
  ...args: Parameters<ReturnType<typeof createLocalJWKSet>>
) => ReturnType<ReturnType<typeof createLocalJWKSet>>;

/** A public key that may have signed a token. */
export interface IssuerKey {
  readonly kid: string | undefined;
  readonly thumbprint: string;
  /** For `jose`: finds only this key, and only if it fits the token's algorithm. */
  readonly lookup: KeyLookup;
}

/**
 * Reads a JWK set (RFC 7517), or one public key in PEM. Leaves out keys that are not for signatures, symmetric keys, keys of unknown types, RSA keys that are
 * too short, and malformed keys. The verifier would otherwise try a malformed key without an identifier for every token. Of a private key in a set it keeps
 * only the public part. Returns no key if none is left and none was malformed: the issuer has withdrawn the others. A malformed key may be what is left of a
 * usable one, for example in an answer that was cut.
 * @throws Error with a message for the operator.
 */
export function parseIssuerKeys(text: string): readonly IssuerKey[] {
  const all = text.includes("-----BEGIN") ? [jwkOfPem(text)] : parseSet(text);
  const wellFormed = all.filter(isWellFormed);
  const usable = wellFormed.filter(isUsable);
  if (usable.length === 0 && wellFormed.length < all.length)
    throw new Error("it has no usable public key for signatures, and at least one of its keys is malformed");
  return usable.map(toIssuerKey);
}

function jwkOfPem(text: string): JWK {
  // createPublicKey would accept a private key too, but that does not belong on this machine.
  if (text.includes("PRIVATE KEY")) throw new Error("it is a private key: only the public one is needed");
  return createPublicKey(text).export({ format: "jwk" });
}

function parseSet(text: string): readonly unknown[] {
  const value = parseJson(text);
  const keys = typeof value === "object" && value !== null && "keys" in value ? value.keys : undefined;
  if (!Array.isArray(keys)) throw new Error('it is not a JWK set, which is an object with a list "keys"');
  if (keys.length > keysMax) throw new Error(`it has more than ${keysMax} keys`);
  return keys;
}

/** The error of `JSON.parse` would quote the text: the log and the health page must not show another file, such as a secret, that the settings name. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("it is neither JSON nor a public key in PEM");
  }
}

/** Whether a key may verify tokens. A symmetric key (kty oct) may not: everybody who can read the set could sign with it. */
function isUsable({ kty, use, key_ops: operations, n }: JWK): boolean {
  if (use !== undefined && use !== "sig") return false;
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes("verify"))) return false;
  if (kty === "RSA") return typeof n === "string" && Buffer.from(n, "base64url").length >= rsaBytesMin;
  return asymmetricTypes.has(kty);
}

/** Knows no rules for keys of types that cannot verify tokens. */
function isWellFormed(key: unknown): key is JWK {
  if (typeof key !== "object" || key === null || !("kty" in key) || typeof key.kty !== "string") return false;
  if (!asymmetricTypes.has(key.kty)) return true;
  try {
    createPublicKey({ key: key as JWK, format: "jwk" });
    return true;
  } catch {
    return false;
  }
}

function toIssuerKey(jwk: JWK): IssuerKey {
  const { d: _private, kid, ...key } = jwk;
  const find = createLocalJWKSet({ keys: [key] });
  // Ignores the identifier in the token: `Issuer` has already compared it with the key's, or the key has none, as in PEM.
  const lookup: KeyLookup = (header, token) => {
    const { kid: _chosen, ...rest } = header ?? {};
    return find(rest, token);
  };
  return { kid: typeof kid === "string" ? kid : undefined, thumbprint: toThumbprint(key), lookup };
}

/** Identifies a key: the same key has the same thumbprint in every document. */
function toThumbprint({ kty, crv, x, y, n, e }: JWK): string {
  return createHash("sha256")
    .update(JSON.stringify([kty, crv, x, y, n, e]))
    .digest("hex");
}
