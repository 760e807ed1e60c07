import { expect, test } from "vitest";
import { layOutJson } from "./json-tokens.ts";

function textOf(json: string): string | undefined {
  return layOutJson(json)
    ?.map(({ text }) => text)
    .join("");
}

test.each([
  '{"a":[1,{"b":null}],"c":{},"d":[],"e":"x:{,]\\"\\\\"}',
  "[[],[[]],{}]",
  '"text"',
  "  12.50e3 ",
  '{"a b":"\\u0041"}',
])("the layout of %j parses to the same value", (json) => {
  const value: unknown = JSON.parse(json);
  expect(JSON.parse(textOf(json) ?? "")).toEqual(value);
});

test("the layout indents each level, and keeps empty objects and arrays on one line", () => {
  expect(textOf('{"a":[1,{"b":null}],"c":{},"d":[]}')).toBe(
    JSON.stringify({ a: [1, { b: null }], c: {}, d: [] }, null, 2),
  );
});

test("the layout keeps all digits and repeated keys", () => {
  expect(textOf('{"n":12345678901234567890.10,"n":1E400}')).toBe('{\n  "n": 12345678901234567890.10,\n  "n": 1E400\n}');
});

test("distinguishes keys, strings, numbers and words", () => {
  const tokens = layOutJson('{"k":"v","n":-1,"w":true}') ?? [];
  expect(tokens.filter(({ kind }) => kind !== "plain")).toEqual([
    { kind: "key", text: '"k"' },
    { kind: "string", text: '"v"' },
    { kind: "key", text: '"n"' },
    { kind: "number", text: "-1" },
    { kind: "key", text: '"w"' },
    { kind: "word", text: "true" },
  ]);
});

test.each(["", "{", "hello", "{'a':1}", "NaN"])("returns undefined for %j, which is not JSON", (text) => {
  expect(layOutJson(text)).toBeUndefined();
});

test.each(["x", "\\n"])("a string of 8 MiB of %s stays as it is, since the pattern could exhaust the stack", (part) => {
  const text = `"${part.repeat(2 ** 23 / part.length)}"`;
  expect(layOutJson(text)).toEqual([{ kind: "plain", text }]);
});

test.each(["x", "\\n"])("lays out a string of %s that is as long as a layout may be", (part) => {
  const text = `"${part.repeat((2 ** 20 - 2) / part.length)}"`;
  expect(layOutJson(text)).toEqual([{ kind: "string", text }]);
});

test.each(["[", '{"a":'])(
  "a short text that nests %j too deep stays as it is, since its layout would be long",
  (open) => {
    const depth = 2000;
    const text = `${open.repeat(depth)}0${(open === "[" ? "]" : "}").repeat(depth)}`;
    expect(layOutJson(text)).toEqual([{ kind: "plain", text }]);
  },
);
