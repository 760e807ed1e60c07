import { toHex } from "@stele/eth/node";
import { expect, test } from "vitest";
import { parsePrivateKey } from "./private-key.ts";

const digits = "AC0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

test.each([digits, `0x${digits}`, `0X${digits}\n`, `  ${digits} \r\n`])("accepts the private key %j", (text) => {
  expect(toHex(parsePrivateKey(text, "KEY"))).toBe(`0x${digits.toLowerCase()}`);
});

test.each(["", digits.slice(1), `${digits}00`, "0".repeat(64), "f".repeat(64), `${digits} ${digits}`, "g".repeat(64)])(
  "refuses the private key %j without showing it",
  (text) => {
    const problem = "KEY does not hold a private key: 64 hexadecimal digits, with or without 0x before them.";
    expect(() => parsePrivateKey(text, "KEY")).toThrow(problem);
  },
);
