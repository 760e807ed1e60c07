import { expect, test } from "vitest";
import { parsePlace, stepsMax, toPlace } from "./time-span.ts";

const span = { from: Date.parse("2026-01-01T00:00:00Z"), to: Date.parse("2026-01-01T10:00:00Z") };

test.each([
  [0, "OFFSET_FIRST"],
  [stepsMax, "OFFSET_LAST"],
  [stepsMax / 2, "2026-01-01T05:00:00.000Z"],
])("step %i of a time line is %s", (step, place) => {
  expect(toPlace(span, step)).toBe(place);
});

test.each([
  [" 12 ", 12],
  ["2cf24dba-59-1124", "2cf24dba-59-1124"],
  ["2026-01-01T05:00:00Z", "2026-01-01T05:00:00Z"],
  ["1234567890123456", "1234567890123456"],
])("reads %j as the place %j", (text, place) => {
  expect(parsePlace(text)).toBe(place);
});
