import { createHash, createPublicKey } from "node:crypto";
import { createLocalJWKSet, type JWK } from "jose";

/** Keys of one issuer; a set with more is refused. */
const keysMax = 100;
/** Smallest modulus of an RSA key (RFC 7518, section 3.3). */
const rsaBytesMin = 256;

export type KeyLookup = (
  ...args: Parameters<ReturnType<typeof createLocalJWKSet>>
) => ReturnType<ReturnType<typeof createLocalJWKSet>>;

/** A public key that may have signed a token. */
export interface IssuerKey {
  readonly kid: string | undefined;
  readonly thumbprint: string;
  /** Finds this key alone, for a token whose algorithm it has. */
  readonly lookup: KeyLookup;
}

/**
 * Reads a JWK set (RFC 7517), or one public key in PEM. Keys for encryption, secret ones and ones too short to sign with are left out. @throws Error in words for
 * the operator.
 */
export function parseIssuerKeys(text: string): readonly IssuerKey[] {
  const all = text.includes("-----BEGIN") ? [jwkOfPem(text)] : parseSet(text);
  const usable = all.filter(isUsable);
  if (usable.length === 0) throw new Error("there is no public key for signatures in it");
  return usable.map(toIssuerKey);
}

function jwkOfPem(text: string): JWK {
  // A private key would be taken too, and does not belong on this machine.
  if (text.includes("PRIVATE KEY")) throw new Error("it is a private key: only the public one is needed");
  return createPublicKey(text).export({ format: "jwk" });
}

function parseSet(text: string): readonly JWK[] {
  const value: unknown = JSON.parse(text);
  const keys = typeof value === "object" && value !== null && "keys" in value ? value.keys : undefined;
  if (!Array.isArray(keys)) throw new Error("it is no JWK set: an object with the list keys");
  if (keys.length > keysMax) throw new Error(`it has more than ${keysMax} keys`);
  return keys.filter((key): key is JWK => typeof key === "object" && key !== null);
}

/** A secret one (kty oct) would let everybody who can read the set sign. */
function isUsable({ kty, use, key_ops: operations, n }: JWK): boolean {
  if (use !== undefined && use !== "sig") return false;
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes("verify"))) return false;
  if (kty === "RSA") return typeof n === "string" && Buffer.from(n, "base64url").length >= rsaBytesMin;
  return kty === "EC" || kty === "OKP";
}

function toIssuerKey(jwk: JWK): IssuerKey {
  const { d: _private, kid, ...key } = jwk;
  const find = createLocalJWKSet({ keys: [key] });
  // The issuer chose it by its identifier already, or it has none, as in PEM.
  const lookup: KeyLookup = (header, token) => {
    const { kid: _chosen, ...rest } = header ?? {};
    return find(rest, token);
  };
  return { kid: typeof kid === "string" ? kid : undefined, thumbprint: toThumbprint(key), lookup };
}

/** The same for two documents that hold the same key. */
function toThumbprint({ kty, crv, x, y, n, e }: JWK): string {
  return createHash("sha256")
    .update(JSON.stringify([kty, crv, x, y, n, e]))
    .digest("hex");
}
