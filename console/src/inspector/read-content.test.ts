import { expect, test } from "vitest";
import { previewOf, readContent, toShown } from "./read-content.ts";

const encode = (text: string): string => Buffer.from(text).toString("base64");

test.each([
  ['{"a":1}', true],
  ["12", true],
  ["hello ü", false],
  ["", false],
])("the text %j is shown as JSON: %j", (text, isJson) => {
  expect(readContent(new TextEncoder().encode(text))).toMatchObject({ text, isJson });
});

test("bytes that are not UTF-8 have no text", () => {
  expect(readContent(Uint8Array.of(0xff, 0xfe))).toMatchObject({ text: undefined, isJson: false });
});

test("a preview has one line, and cuts a long content after a whole character", () => {
  expect(previewOf(encode("a\n\tb  c"))).toBe("a b c");
  expect(previewOf(encode(`x${"ü".repeat(500)}`))).toMatch(/^xü{100,}…$/);
});

test("shows a text of 256 Ki characters whole, and of a longer one the beginning and how much is missing", () => {
  const text = "x".repeat(2 ** 18);
  expect(toShown(text)).toBe(text);
  expect(toShown(`${text}${"y".repeat(1234)}`)).toBe(`${text}\n… and 1,234 characters more`);
});

test("cuts no character beyond the first plane of Unicode in two", () => {
  const head = "x".repeat(2 ** 18 - 1);
  expect(toShown(`${head}😀y`)).toBe(`${head}\n… and 3 characters more`);
});
