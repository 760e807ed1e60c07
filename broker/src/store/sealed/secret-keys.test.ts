import { describe, expect, test } from "vitest";
import { parseSecretKeys, secretKeysMax, toSecretKey } from "./secret-keys.ts";

const hex = (byte: string) => byte.repeat(32);
const base64 = Buffer.from(hex("ab"), "hex").toString("base64");

describe("parseSecretKeys", () => {
  test("parses keys in hexadecimal or Base64, newest first, with comments and empty lines", () => {
    const keys = parseSecretKeys(`# of this year\r\n${hex("AB")}\r\n\n  ${hex("cd")}  \n# older\n${base64}\n`, "file");
    expect(keys).toEqual(["ab", "cd", "ab"].map((byte) => toSecretKey(Buffer.from(hex(byte), "hex"))));
    expect(keys[0]?.id).toMatch(/^[0-9a-f]{16}$/);
    expect(keys[0]?.id).not.toBe(keys[1]?.id);
  });

  test.each([
    ["", /^file holds no key; restore the file from a backup, or for a new file make a key by: openssl rand -hex 32$/],
    ["# nothing\n", /^file holds no key/],
    [`${hex("ab")}\n${hex("cd").slice(2)}`, /^file, line 2: no key of 32 bytes/],
    [`${hex("ab")}00`, /^file, line 1: no key of 32 bytes in hexadecimal or Base64; restore the file from a backup/],
    [base64.slice(1), /^file, line 1: no key/],
    ["hunter2", /^file, line 1: no key/],
    [`${hex("ab")}\n`.repeat(secretKeysMax + 1), /^file holds 17 keys; 16 is the limit$/],
  ])("refuses a file that holds %j, with a message that quotes no key", (text, message) => {
    expect(() => parseSecretKeys(text, "file")).toThrow(message);
    expect(() => parseSecretKeys(text, "file")).not.toThrow(/hunter2|abab|cdcd/);
  });
});
