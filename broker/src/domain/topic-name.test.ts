import { isBrokerError } from "@stele/wire";
import { describe, expect, it } from "vitest";
import { parseTopicName, topicCharactersMax } from "./topic-name.ts";

function codeOf(text: string): number | undefined {
  try {
    parseTopicName(text);
    return undefined;
  } catch (error) {
    if (isBrokerError(error)) return error.code;
    throw error;
  }
}

describe("parseTopicName", () => {
  const accepted = [
    "a",
    "a/b",
    "/a",
    "a//b",
    " a ",
    "50% off",
    "a\u0080",
    "~",
    "x".repeat(topicCharactersMax),
    "$SYS/a",
    'q"\\',
  ];
  it.each(accepted)("accepts %j", (text) => {
    expect(parseTopicName(text)).toBe(text);
  });

  const refused: readonly (readonly [string, number])[] = [
    ["", 100103],
    ["   ", 100103],
    ["x".repeat(topicCharactersMax + 1), 100102],
    ["a+b", 100106],
    ["a/#", 100106],
    ["+", 100106],
    ["a/", 100106],
    ["/", 100106],
    ["a\tb", 100106],
    ["a\u0000", 100106],
    ["a\u001f", 100106],
    ["a\u0081", 100106],
    ["é", 100106],
    ["😀", 100106],
  ];
  it.each(refused)("refuses %j with %i", (text, code) => {
    expect(codeOf(text)).toBe(code);
  });
});
