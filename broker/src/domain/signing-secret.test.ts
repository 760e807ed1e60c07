import { isBrokerError } from "@stele/wire";
import { describe, expect, it } from "vitest";
import { findPrivateKey } from "../lib/private-key.ts";
import { checkSecretPrefix, readSecrets, rotateSecret, validSecrets } from "./signing-secret.ts";

const seed = Buffer.alloc(32, 7);
const privateKey = `whsk_${seed.toString("base64")}`;

describe("a rotation", () => {
  const until = 1_000;

  it("has two valid secrets until its time, the newer one first", () => {
    const text = rotateSecret("old", "new", { until });
    expect(validSecrets(text, until - 1)).toEqual(["new", "old"]);
    expect(validSecrets(text, until)).toEqual(["new"]);
    expect(readSecrets(text)).toEqual({ current: "new", older: { secret: "old", until } });
  });

  it("keeps the secret before it, not the one before that", () => {
    const text = rotateSecret(rotateSecret("first", "second", { until }), "third", { until: 2_000 });
    expect(validSecrets(text, 0)).toEqual(["third", "second"]);
  });

  it("goes on where the newer secret is given again", () => {
    const text = rotateSecret("old", "new", { until });
    expect(rotateSecret(text, "new", { until: 9_000 })).toBe(text);
    expect(rotateSecret("old", "old", { until })).toBe("old");
  });
});

it("a secret that does not rotate is the text itself", () => {
  expect(validSecrets("plain", 0)).toEqual(["plain"]);
});

describe("prefixes", () => {
  it.each(["whrot_", 'whrot_{"current":"a"}', "whsk_", "whsk_AAAA", "whsk_no base64", `${privateKey}AAAA`])(
    "refuses %j",
    (secret) => {
      const refusal = ((): unknown => {
        try {
          return checkSecretPrefix(secret);
        } catch (error) {
          return error;
        }
      })();
      expect(isBrokerError(refusal, "parameterInvalid")).toBe(true);
    },
  );

  it("an asymmetric key has 32 bytes, with or without its public key", () => {
    const whole = `whsk_${Buffer.concat([seed, Buffer.alloc(32, 9)]).toString("base64")}`;
    for (const key of [privateKey, whole]) {
      checkSecretPrefix(key);
      expect(findPrivateKey(key)).toEqual(seed);
    }
    expect(findPrivateKey("whsec_AAAA")).toBeUndefined();
  });
});
