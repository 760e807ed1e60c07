import { expect, it } from "vitest";
import { quote } from "./quote.ts";

it.each([
  ["a", '"a"'],
  [undefined, "undefined"],
  ["x".repeat(100), `"${"x".repeat(79)}…`],
  [`${"x".repeat(77)}\u{1f600}y`, `"${"x".repeat(77)}\u{1f600}…`],
])("quotes %j as JSON, cut after at most 80 characters", (value, quoted) => {
  expect(quote(value)).toBe(quoted);
});

it("cuts before a surrogate pair, not inside: strict JSON parsers would refuse the whole answer", () => {
  expect(quote(`${"x".repeat(78)}\u{1f600}y`)).toBe(`"${"x".repeat(78)}…`);
});
