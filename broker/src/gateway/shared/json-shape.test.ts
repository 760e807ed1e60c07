import { expect, it } from "vitest";
import { jsonDepthMax, jsonNamesMax, jsonValuesMax } from "../limits.ts";
import { measureJson, repeatsName } from "./json-shape.ts";

function nested(levels: number): Buffer {
  return Buffer.from("[".repeat(levels) + "]".repeat(levels));
}

function listed(count: number): Buffer {
  return Buffer.from(`[${"1,".repeat(count)}1]`);
}

function toObjects(count: number, nameOf: (index: number) => string): Buffer {
  return Buffer.from(JSON.stringify(Array.from({ length: count }, (_, index) => ({ [nameOf(index)]: "a:1" }))));
}

it.each([
  ["1", 1],
  ["[]", 2],
  ['{"a":1,"b":[2,3]}', 5],
  ['"[{,\\\\\\",["', 1],
  ['["\\\\",1]', 3],
  ['["never closed, [[', 2],
])("counts the values of %s as %i", (text, values) => {
  expect(measureJson(Buffer.from(text))).toMatchObject({ values, refusal: undefined });
});

it("limits levels and values", () => {
  expect(measureJson(nested(jsonDepthMax)).refusal).toBeUndefined();
  expect(measureJson(nested(jsonDepthMax + 1)).refusal).toMatch(/64 levels/);
  expect(measureJson(listed(jsonValuesMax - 2)).refusal).toBeUndefined();
  expect(measureJson(listed(jsonValuesMax - 1)).refusal).toMatch(/100000 values/);
});

it("limits the number of different names, but not of repeated ones", () => {
  expect(measureJson(toObjects(2 * jsonNamesMax, String)).refusal).toBeUndefined();
  expect(measureJson(toObjects(2 * jsonNamesMax + 1, String)).refusal).toMatch(/2000 different names/);
  expect(measureJson(toObjects(40_000, (index) => `"${index % 100}`)).refusal).toBeUndefined();
});

it.each([
  ["{}", 0],
  ['{"a":":","b":{"a":1,"a":2}}', 4],
  ['[{"\\":":1},":"]', 1],
])("counts the names of %s as %i", (text, names) => {
  expect(measureJson(Buffer.from(text)).names).toBe(names);
});

it.each([
  ['{"a":{"a":[{"b":1},{"b":":"}]}}', false],
  ['{"a":[{"b":1,"b":1}]}', true],
  ['{"__proto__":1,"\\u0061":1,"a":2}', true],
  ["[1,null]", false],
])("finds whether %s repeats a name: %s", (text, isRepeated) => {
  expect(repeatsName(measureJson(Buffer.from(text)), JSON.parse(text))).toBe(isRepeated);
});
