import { describe, expect, it } from "vitest";
import { takeFormat, toJsonText, WrongFormat } from "./output-format.ts";

describe("takeFormat", () => {
  it.each([
    [["list"], "table", ["list"]],
    [["list", "-o", "json", "--all"], "json", ["list", "--all"]],
    [["--output", "ndjson"], "ndjson", []],
    [["--output=json", "x"], "json", ["x"]],
    [["-ojson", "x"], "json", ["x"]],
    [["-o=json"], "json", []],
    [["--outputs", "x"], "table", ["--outputs", "x"]],
  ])("reads %j", (argv, format, words) => {
    expect(takeFormat(argv)).toEqual({ format, words });
  });

  it.each([[["-o"]], [["-o", "xml"]], [["--output="]], [["--output=yaml"]]])("refuses %j", (argv) => {
    expect(() => takeFormat(argv)).toThrow(WrongFormat);
  });
});

describe("toJsonText", () => {
  it.each([
    ["json", { a: 1 }, '{\n  "a": 1\n}\n'],
    ["ndjson", { a: 1 }, '{"a":1}\n'],
    ["json", [], "[]\n"],
    ["ndjson", [], ""],
    ["json", [{ a: 1 }, { a: 2 }], '[\n  {"a":1},\n  {"a":2}\n]\n'],
    ["ndjson", [{ a: 1 }, { a: 2 }], '{"a":1}\n{"a":2}\n'],
  ] as const)("writes %s of %j", (format, result, text) => {
    expect(toJsonText(format, result)).toBe(text);
  });
});
