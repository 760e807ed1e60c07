import { expect, test } from "vitest";
import { readCredential } from "./credential.ts";
import { toCredential } from "./log-in.ts";

test.each([
  [undefined, undefined],
  ["Bearer stele_1_x", "stele_1_x"],
  ["bearer  stele_1_x ", "stele_1_x"],
  ["BEARER stele_1_x", "stele_1_x"],
  ["Basic dTpw", "Basic dTpw"],
  ["Bearer", "Bearer"],
  ["Bearer a b", "Bearer a b"],
  ["", ""],
])("the header %j holds the credential %j", (header, credential) => {
  expect(readCredential(header)).toBe(credential);
});

test.each([
  [undefined, undefined, undefined],
  ["key", undefined, "key"],
  ["key", "", "key"],
  ["user", "key", "key"],
  ["", "key", "key"],
])("the user name %j and the password %j give %j", (userName, password, credential) => {
  expect(toCredential({ userName, password })).toBe(credential);
});
