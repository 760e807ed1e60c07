import { expect, test } from "vitest";
import { isTimestamp, parseDateTime, parseTime } from "./parse-time.ts";

test.each([
  ["1970-01-01T00:00:01Z", 1_000],
  ["1970-01-01T01:00:01.5+01:00", 1_500],
  ["1969-12-31T23:30:00-00:30", 0],
  ["1970-01-01t00:00:00.123456789z", 123],
  ["2024-02-29T00:00:00Z", Date.UTC(2024, 1, 29)],
  ["2026-12-31T23:59:59Z", Date.UTC(2026, 11, 31, 23, 59, 59)],
])("parses %s to %i ms", (text, time) => {
  expect(parseDateTime(text)).toBe(time);
  expect(parseTime(text)).toBe(time);
  expect(isTimestamp(text)).toBe(true);
});

test.each([
  "2026-02-31T14:00:00Z",
  "2026-02-29T00:00:00Z",
  "2026-04-31T00:00:00Z",
  "2026-13-01T00:00:00Z",
  "2026-00-01T00:00:00Z",
  "2026-01-00T00:00:00Z",
  "2026-01-32T00:00:00Z",
  "2026-01-01T24:00:00Z",
  "2026-01-01T23:60:00Z",
  "2026-01-01T23:59:61Z",
  "2026-01-01T00:00:00+24:00",
  "2026-01-01T00:00:00+01:60",
])("parses %s, which does not exist, to NaN", (text) => {
  expect(parseDateTime(text)).toBeNaN();
  expect(parseTime(text)).toBeNaN();
  expect(isTimestamp(text)).toBe(false);
});

test.each([
  "",
  "OFFSET_FIRST",
  "2cf24dba-59-1124",
  "2026-01-01",
  "2026-01-01T00:00:00",
  "2026-01-01 00:00:00Z",
  "not-a-time",
])("returns undefined for %j, which does not have the form of a time", (text) => {
  expect(parseDateTime(text)).toBeUndefined();
  expect(parseTime(text)).toBeUndefined();
  expect(isTimestamp(text)).toBe(false);
});

// The first two are the examples of RFC 3339, section 5.8.
test.each([
  "1990-12-31T23:59:60Z",
  "1990-12-31T15:59:60-08:00",
  "2016-12-31t23:59:60.25z",
  "2015-07-01T05:29:60+05:30",
])("isTimestamp accepts %s, a leap second, but parseDateTime returns NaN", (text) => {
  expect(isTimestamp(text)).toBe(true);
  expect(parseDateTime(text)).toBeNaN();
});

test.each(["1990-12-31T23:58:60Z", "1990-12-30T23:59:60Z", "1990-12-31T23:59:60-08:00", "1990-12-32T23:59:60Z"])(
  "isTimestamp refuses %s: a leap second can only end a month in UTC",
  (text) => {
    expect(isTimestamp(text)).toBe(false);
  },
);

test("parseDateTime accepts a time without seconds, and isTimestamp refuses it", () => {
  expect(parseDateTime("1970-01-01T00:01Z")).toBe(60_000);
  expect(isTimestamp("1970-01-01T00:01Z")).toBe(false);
});

test("parseTime accepts milliseconds since the epoch, and parseDateTime does not", () => {
  expect(parseTime("1795424400000")).toBe(1_795_424_400_000);
  expect(parseDateTime("1795424400000")).toBeUndefined();
});
