import { isBrokerError } from "@stele/wire";
import { expect, test } from "vitest";
import { checkSecret, secretCharactersMax } from "./subscription.ts";

test.each([undefined, "x", "ä😀", "two\nlines", "whsec_AAAA", "whsec_AAA="])("accepts the secret %j", (secret) => {
  expect(() => checkSecret(secret)).not.toThrow();
});

test("accepts a secret of 1024 characters, and refuses a longer one with 200001", () => {
  expect(() => checkSecret("x".repeat(secretCharactersMax))).not.toThrow();
  expect(() => checkSecret("x".repeat(secretCharactersMax + 1))).toThrow("has 1025 characters, at most 1024");
});

test.each(["", " ", "\0", "a\0b", "whsec_", "whsec_=", "whsec_A", "whsec_\0"])(
  "refuses the secret %j with 200001",
  (secret) => {
    let failure: unknown;
    try {
      checkSecret(secret);
    } catch (error) {
      failure = error;
    }
    expect(isBrokerError(failure, "parameterInvalid")).toBe(true);
  },
);
