import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Event } from "../../domain/event.ts";
import { toPosition } from "../../domain/position.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { jsonDepthMax, jsonNamesMax, jsonValuesMax } from "../limits.ts";
import { ContentFilter } from "./content-filter.ts";
import { filterCharactersMax, filterConditionsMax, unmeasuredContentBytesMax } from "./limits.ts";
import { collectGarbage } from "../../lib/testing/collect-garbage.ts";

const toEvent = (content: string | Uint8Array): Event => ({
  topic: parseTopicName("a"),
  sequence: 1,
  blockNumber: 1,
  position: toPosition(1, 0),
  content: typeof content === "string" ? new TextEncoder().encode(content) : content,
  extensions: [],
});

const order = `{"status":"paid","total":12.50,"express":true,"note":null,"items":[{"sku":"a-1"},{"sku":"b\\"2"}],
  "über":{"a b":1,"it's":2},"":3,"__proto__":{"x":1},"n":{"0":"zero"}}`;

test.each([
  '$.status == "paid"',
  "$.status=='paid'",
  "  $ . status == 'paid'".replace(" . ", "."),
  "$['status'] == \"paid\"",
  "$.total == 12.5",
  "$.total == 1.25e1",
  "$.express == true",
  "$.note == null",
  "$.items[0].sku == 'a-1'",
  "$.items[ 1 ]['sku'] == 'b\"2'",
  "$.items[1].sku == 'b\\\"2'",
  '$.items[1].sku == "b\\"2"',
  "$.über['a b'] == 1",
  "$.über['it\\'s'] == 2",
  '$.über["it\'s"] == 2',
  "$[''] == 3",
  "$['st\\u0061tus'] == 'paid'",
  "$['__proto__'].x == 1",
  "$.status == 'paid' && $.total == 12.5 && $.express == true",
])("%s matches", (text) => {
  expect(ContentFilter.parse(text).matches(toEvent(order))).toBe(true);
});

test.each([
  "$.status == 'open'",
  "$.total == '12.5'",
  "$.express == 'true'",
  "$.nothing == null",
  "$.status.length == 4",
  "$.items.length == 2",
  "$.items[2] == null",
  "$.n[0] == 'zero'",
  "$.items == 'a'",
  "$.toString == null",
  "$.status == 'paid' && $.total == 1",
])("%s does not match", (text) => {
  expect(ContentFilter.parse(text).matches(toEvent(order))).toBe(false);
});

test("matches a content that is a single number", () => {
  expect(ContentFilter.parse("$ == 5").matches(toEvent(" 5 "))).toBe(true);
});

test.each([["no JSON"], [""], [Uint8Array.of(0x22, 0xff, 0x22)]])("does not match %j, which is not JSON", (content) => {
  expect(ContentFilter.parse("$ == 5").matches(toEvent(content))).toBe(false);
});

test.each([
  ["levels", `${"[".repeat(jsonDepthMax)}${"]".repeat(jsonDepthMax)}`],
  ["values", `[${"0,".repeat(jsonValuesMax)}0]`],
  ["names", `[${Array.from({ length: 2 * jsonNamesMax + 1 }, (_, index) => `{"${index}":0}`).join(",")}]`],
])("a content of more than 64 KiB with too many %s matches nothing, a shorter one is parsed", (_, value) => {
  const filter = ContentFilter.parse("$.a == 1");
  const match = (padding: number): boolean =>
    filter.matches(toEvent(`{"a":1,"b":${value},"c":"${"x".repeat(padding)}"}`));
  expect(match(unmeasuredContentBytesMax)).toBe(false);
  expect(match(0)).toBe(value.length < unmeasuredContentBytesMax);
  expect(filter.matches(toEvent(`{"a":1,"c":"${"x".repeat(2 * unmeasuredContentBytesMax)}"}`))).toBe(true);
});

test.each([
  ["status == 'paid'", 'expected $ at character 1 of "status'],
  ["$.status", "expected == at character 9"],
  ["$.status = 'paid'", "expected == at character 10"],
  ["$.status != 'paid'", "expected == at character 10"],
  ["$..status == 'paid'", "expected == at character 2"],
  ["$.* == 1", "expected == at character 2"],
  ["$[-1] == 1", "expected == at character 2"],
  ["$[01] == 1", "expected == at character 2"],
  ["$['a' == 1", "expected a name in quotes and ]"],
  ["$.a == paid", "expected a JSON string, number"],
  ["$.a == 01", "expected && at character 9"],
  ["$.a == 'x", "expected a JSON string"],
  ["$.a == 'x\\q'", "expected a string whose escapes"],
  ["$.a == 1 || $.b == 2", "expected && at character 10"],
  ["$.a == 1 &&", "expected $ at character 12"],
  ["$.a == truely", "expected a JSON string"],
])("refuses %s: %s", (text, reason) => {
  expect(() => ContentFilter.parse(text)).toThrow(reason);
});

test.each([
  ["0.1", true],
  ["1.250e+1", true],
  ["-0.0", true],
  ["1e-7", true],
  ["123e-9", true],
  ["5e-324", true],
  ["1e15", true],
  ["9007199254740991", true],
  ["-9007199254740991", true],
  ["9007199254740992", false],
  ["9007199254740993", false],
  ["-9007199254740993", false],
  ["0.1000000000000000055", false],
  ["4503599627370496.2", false],
  ["1e16", false],
  ["1e400", false],
  ["1e-400", false],
])("accepts the number %s: %s", (text, isTaken) => {
  const parse = (): ContentFilter => ContentFilter.parse(`$ == ${text}`);
  if (isTaken) expect(parse().matches(toEvent(text))).toBe(true);
  else expect(parse).toThrow(`"filter" has the number "${text}"`);
});

test("the largest safe integer matches none of its neighbours", () => {
  const filter = ContentFilter.parse("$.n == 9007199254740991");
  expect(filter.matches(toEvent('{"n":9007199254740991}'))).toBe(true);
  for (const n of ["9007199254740990", "9007199254740992", "9007199254740993"]) {
    expect(filter.matches(toEvent(`{"n":${n}}`))).toBe(false);
  }
});

test("limits the length of a filter and the number of its conditions", () => {
  expect(() => ContentFilter.parse(`$.a == '${"x".repeat(filterCharactersMax)}'`)).toThrow("characters, at most");
  const conditions = Array.from({ length: filterConditionsMax + 1 }, () => "$.a == 1");
  expect(() => ContentFilter.parse(conditions.join("&&"))).toThrow("more than 16 conditions");
  expect(() => ContentFilter.parse(conditions.slice(1).join("&&"))).not.toThrow();
});

test("keeps no reference to an event that it has read", async () => {
  const filter = ContentFilter.parse("$.status == 'paid'");
  const read = (): WeakRef<Event> => {
    const event = toEvent(order);
    expect(filter.matches(event)).toBe(true);
    return new WeakRef(event);
  };
  const kept = read();
  await turn(); // a new WeakRef keeps its target until the end of the turn
  collectGarbage();
  expect(kept.deref()).toBeUndefined();
});
