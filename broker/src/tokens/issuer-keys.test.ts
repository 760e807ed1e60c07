import { generateKeyPairSync } from "node:crypto";
import { CompactSign, compactVerify, type JWK } from "jose";
import { describe, expect, it } from "vitest";
import { parseIssuerKeys } from "./issuer-keys.ts";

const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const jwk = publicKey.export({ format: "jwk" }) as JWK;
const good: JWK = { ...jwk, kid: "good" };
const toSet = (...keys: readonly unknown[]): string => JSON.stringify({ keys });

describe("parseIssuerKeys leaves out", () => {
  it.each<[string, JWK]>([
    ["a key for encryption", { ...jwk, use: "enc" }],
    ["a key that may not verify", { ...jwk, key_ops: ["deriveKey"] }],
    ["a key whose key_ops is not a list", { ...jwk, key_ops: "verify" as never }],
    ["a secret key", { kty: "oct", k: "AAAA" }],
    ["an RSA key of 1,024 bits", { kty: "RSA", e: "AQAB", n: Buffer.alloc(128, 1).toString("base64url") }],
    ["a key of an unknown type", { kty: "AKP" }],
  ])("%s", (_, key) => {
    expect(parseIssuerKeys(toSet(key, good)).map(({ kid }) => kid)).toEqual(["good"]);
    expect(parseIssuerKeys(toSet(key))).toEqual([]);
  });
});

const malformed: readonly (readonly [string, unknown])[] = [
  ["null", null],
  ["a text", "key"],
  ["a list", [good]],
  ["a key without a type", { ...good, kty: undefined }],
  ["a key whose end was cut", { ...good, y: "AAAA" }],
  ["an RSA key without a modulus", { kty: "RSA", e: "AQAB" }],
  ["a key for encryption on an unknown curve", { ...good, use: "enc", crv: "P-1" }],
];

it.each(malformed)("leaves out %s beside a usable key, and refuses a set without one", (_, key) => {
  expect(parseIssuerKeys(toSet(key, good)).map(({ kid }) => kid)).toEqual(["good"]);
  expect(() => parseIssuerKeys(toSet({ ...jwk, use: "enc" }, key))).toThrow("one of its keys is malformed");
});

const ed25519 = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" }) as JWK;

describe("parseIssuerKeys takes", () => {
  it.each<[string, JWK]>([
    ["an RSA key of 2,048 bits", { kty: "RSA", e: "AQAB", n: Buffer.alloc(256, 1).toString("base64url") }],
    ["an Ed25519 key", ed25519],
    ["a key that may verify", { ...jwk, key_ops: ["sign", "verify"] }],
  ])("%s", (_, key) => {
    expect(parseIssuerKeys(toSet(key))).toHaveLength(1);
  });
});

it.each([
  ["that is not JSON", "<html>", "JSON"],
  ["without a list of keys", "{}", "not a JWK set"],
  ["with more than 100 keys", toSet(...Array.from({ length: 101 }, () => good)), "more than 100 keys"],
  [
    "with a private key in PEM",
    privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    "only the public one is needed",
  ],
])("refuses a document %s", (_, text, reason) => {
  expect(() => parseIssuerKeys(text)).toThrow(reason);
});

it("does not quote a document that is not JSON, since a setting may name the file of a secret by mistake", () => {
  expect(() => parseIssuerKeys("a-client-secret")).toThrow(/^it is neither JSON nor a public key in PEM$/);
});

it("uses only the public part of a private key in a set", async () => {
  const [key] = parseIssuerKeys(toSet(privateKey.export({ format: "jwk" })));
  const signed = await new CompactSign(Buffer.from("x")).setProtectedHeader({ alg: "ES256" }).sign(privateKey);
  if (key === undefined) throw new Error("the set has no usable key");
  expect((await compactVerify(signed, key.lookup)).protectedHeader).toEqual({ alg: "ES256" });
});
