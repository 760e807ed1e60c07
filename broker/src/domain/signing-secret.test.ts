import { createPublicKey } from "node:crypto";
import { isBrokerError } from "@stele/wire";
import { describe, expect, it } from "vitest";
import { findPrivateKey, toPrivateKey } from "../lib/private-key.ts";
import { checkSecret, madeSecretBytes, readSecrets, rotateSecret, toSecret, validSecrets } from "./signing-secret.ts";

const seed = Buffer.alloc(32, 7);
const privateKey = `whsk_${seed.toString("base64")}`;
const symmetric = (bytes: number): string => `whsec_${Buffer.alloc(bytes, 1).toString("base64")}`;

describe("a rotation", () => {
  const until = 1_000;

  it("has two valid secrets until it ends, the newer one first", () => {
    const text = rotateSecret("old", "new", { until });
    expect(validSecrets(text, until - 1)).toEqual(["new", "old"]);
    expect(validSecrets(text, until)).toEqual(["new"]);
    expect(readSecrets(text)).toEqual({ current: "new", older: { secret: "old", until } });
  });

  it("keeps the previous secret, and drops the one before it", () => {
    const text = rotateSecret(rotateSecret("first", "second", { until }), "third", { until: 2_000 });
    expect(validSecrets(text, 0)).toEqual(["third", "second"]);
  });

  it("changes nothing if the current secret is given again", () => {
    const text = rotateSecret("old", "new", { until });
    expect(rotateSecret(text, "new", { until: 9_000 })).toBe(text);
    expect(rotateSecret("old", "old", { until })).toBe("old");
  });
});

it("without a rotation, the stored text is the only valid secret", () => {
  expect(validSecrets("plain", 0)).toEqual(["plain"]);
});

describe("a secret", () => {
  const publicKey = createPublicKey(toPrivateKey(seed)).export({ format: "der", type: "spki" }).subarray(-32);
  const whole = `whsk_${Buffer.concat([seed, publicKey]).toString("base64")}`;

  it.each([symmetric(24), symmetric(25), symmetric(64), toSecret(new Uint8Array(madeSecretBytes)), privateKey, whole])(
    "is accepted by checkSecret: %s",
    (secret) => {
      checkSecret(secret);
    },
  );

  it.each([
    "",
    " ",
    "\0",
    "x",
    "generate",
    "a plain secret of more than 24 bytes",
    "whsec_",
    "whsec_A",
    "whsec_=",
    "whsec_no base64",
    `${symmetric(24)}\0`,
    symmetric(25).replaceAll("=", ""),
    symmetric(23),
    symmetric(65),
    symmetric(1024),
    symmetric(24).toUpperCase().slice(0, -1),
    "whrot_",
    'whrot_{"current":"a"}',
    "whsk_",
    "whsk_AAAA",
    "whsk_no base64",
    `${privateKey}AAAA`,
    `whsk_${Buffer.concat([seed, Buffer.alloc(32, 9)]).toString("base64")}`,
  ])(
    "is refused by checkSecret, with an error that tells how to make a secret and does not repeat it: %j",
    (secret) => {
      const refusal = ((): unknown => {
        try {
          return checkSecret(secret);
        } catch (error) {
          return error;
        }
      })();
      expect(isBrokerError(refusal, "parameterInvalid")).toBe(true);
      const details = String(refusal);
      expect(details).toContain('echo "whsec_$(openssl rand -base64 32)"');
      if (secret.length > 8) expect(details).not.toContain(secret);
    },
  );

  it.each([`whsec_${"+/".repeat(16)}`, `whsk_${Buffer.alloc(32, 0xfb).toString("base64")}`])(
    'whose "+" became a space in form data is refused with an error that says so: %s',
    (secret) => {
      checkSecret(secret);
      expect(() => checkSecret(secret.replaceAll("+", " "))).toThrow(
        /space where its Base64 must have "\+": percent-encode it/,
      );
    },
  );

  it("gives findPrivateKey the 32 bytes of an asymmetric key, with or without its public key", () => {
    for (const key of [privateKey, whole]) expect(findPrivateKey(key)).toEqual(seed);
    expect(findPrivateKey("whsec_AAAA")).toBeUndefined();
  });
});
