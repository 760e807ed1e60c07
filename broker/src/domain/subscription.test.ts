import { isBrokerError } from "@stele/wire";
import { expect, test } from "vitest";
import { checkSecret, secretCharactersMax } from "./subscription.ts";

test.each([undefined, "x", "ä😀", "two\nlines", "whsec_AAAA", "whsec_AAA="])("the secret %j is taken", (secret) => {
  expect(() => checkSecret(secret)).not.toThrow();
});

test("a secret of 1024 characters is taken, and a longer one is 200001", () => {
  expect(() => checkSecret("x".repeat(secretCharactersMax))).not.toThrow();
  expect(() => checkSecret("x".repeat(secretCharactersMax + 1))).toThrow("has 1025 characters, at most 1024");
});

test.each(["", " ", "\0", "a\0b", "whsec_", "whsec_=", "whsec_A", "whsec_\0"])("the secret %j is 200001", (secret) => {
  let failure: unknown;
  try {
    checkSecret(secret);
  } catch (error) {
    failure = error;
  }
  expect(isBrokerError(failure, "parameterInvalid")).toBe(true);
});
