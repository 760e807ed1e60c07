import { expect, test } from "vitest";
import { toHexDump } from "./hex.ts";

test("toHexDump shows sixteen bytes a line as hexdump -C does", () => {
  const bytes = new TextEncoder().encode("hello, chain of blocks\n");
  expect(toHexDump(bytes)).toBe(
    [
      "00000000  68 65 6c 6c 6f 2c 20 63  68 61 69 6e 20 6f 66 20  |hello, chain of |",
      "00000010  62 6c 6f 63 6b 73 0a                              |blocks.|",
    ].join("\n"),
  );
});

test("toHexDump returns an empty text for no bytes", () => {
  expect(toHexDump(new Uint8Array())).toBe("");
});

test("toHexDump shows the first 256 KiB of a longer content, and says how much is missing", () => {
  const lines = toHexDump(new Uint8Array(2 ** 18 + 1234)).split("\n");
  expect(lines).toHaveLength(2 ** 14 + 1);
  expect(lines.at(-1)).toBe("… and 1,234 bytes more");
});
