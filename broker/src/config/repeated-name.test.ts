import { expect, it } from "vitest";
import { findRepeatedName } from "./repeated-name.ts";

it.each([
  ['{"a": 1, "a": 2}', "a"],
  ['{"roles": {"member": [{"effect": "deny"}], "member": []}}', "member"],
  ['{"a": {"b": 1}, "c": [{"b": 1, "\\u0062": 2}]}', "b"],
  ['{"__proto__": 1, "__proto__": 2}', "__proto__"],
  ['{"a":1,"b":{"a":1},"a":{"c":1}}', "a"],
  ['{"a": "b: 1", "b": ["c", ":", "\\"d\\": 1", "{\\"a\\":1}"], "c": {"a": "\\\\"}}', undefined],
  ['["a", ":b", {}]', undefined],
  ["{}", undefined],
  ["5", undefined],
])("in %s, the repeated name is %j", (json, name) => {
  expect(findRepeatedName(json)).toBe(name);
});

it.each([
  ["x", 16_000_000],
  [String.raw`\"`, 4_000_000],
])("reads a text with %s %i times", (characters, count) => {
  expect(findRepeatedName(`{"a": "${characters.repeat(count)}", "a": 1}`)).toBe("a");
});
