import { expect, test } from "vitest";
import type { EventPayload, Extensions } from "./event.ts";
import { commonEventRules, findBreach, toEventRules } from "./event-rules.ts";

const wide = { contentBytesMax: 300_000, extensionsBytesMax: 10, batchBytesMax: 2_000_000, keyPrefixes: ["acme."] };

function event(contentBytes: number, extensions: Extensions = []): EventPayload {
  return { content: new Uint8Array(contentBytes), extensions };
}

test.each<readonly [string, EventPayload, RegExp | undefined]>([
  ["accept the longest content", event(262_144), undefined],
  ["refuse a content of one byte more", event(262_145), /event 0 .* content of 262145 bytes, at most 262144/],
  ["accept the longest extensions", event(1, [["svc-a", "a".repeat(16_379)]]), undefined],
  [
    "refuse extensions of one byte more in UTF-8",
    event(1, [["svc-é", "a".repeat(16_379)]]),
    /extensions of 16385 bytes/,
  ],
  ["accept a key equal to the prefix", event(1, [["svc-", ""]]), undefined],
  ["refuse a key without the prefix", event(1, [["a", ""]]), /does not begin with svc-/],
])("the rules of every broker %s", (_, one, breach) => {
  const found = findBreach({ events: [one], bytes: 300_000 }, commonEventRules);
  if (breach === undefined) expect(found).toBeUndefined();
  else expect(found).toMatch(breach);
});

test("refuses a batch of one byte more than the limit", () => {
  const { batchBytesMax: bytes } = commonEventRules;
  expect(findBreach({ events: [event(1)], bytes }, commonEventRules)).toBeUndefined();
  expect(findBreach({ events: [event(1)], bytes: bytes + 1 }, commonEventRules)).toMatch(/batch of 1048577 bytes/);
});

test("a broker reads everything that it may publish, and at least what every broker reads", () => {
  const rules = toEventRules(wide);
  expect(rules).toEqual({
    contentBytesMax: 300_000,
    extensionsBytesMax: 16_384,
    batchBytesMax: 2_000_000,
    keyPrefixes: ["svc-", "acme."],
  });
  for (const key of ["svc-a", "acme.a"]) {
    expect(findBreach({ events: [event(300_000, [[key, "1"]])], bytes: 1_900_000 }, rules)).toBeUndefined();
  }
});
