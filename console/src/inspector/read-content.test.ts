import { expect, test } from "vitest";
import { previewOf, readContent } from "./read-content.ts";

const encode = (text: string): string => Buffer.from(text).toString("base64");

test.each([
  ['{"a":1}', true],
  ["12", true],
  ["hello ü", false],
  ["", false],
])("the text %j is shown as JSON: %j", (text, isJson) => {
  expect(readContent(new TextEncoder().encode(text))).toMatchObject({ text, isJson });
});

test("bytes that are no UTF-8 have no text", () => {
  expect(readContent(Uint8Array.of(0xff, 0xfe))).toMatchObject({ text: undefined, isJson: false });
});

test("a preview has one line, and cuts a long content after a whole character", () => {
  expect(previewOf(encode("a\n\tb  c"))).toBe("a b c");
  expect(previewOf(encode(`x${"ü".repeat(500)}`))).toMatch(/^xü{100,}…$/);
});
