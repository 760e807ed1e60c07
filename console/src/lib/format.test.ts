import { expect, test } from "vitest";
import { formatCounted, formatDuration, formatTime } from "./format.ts";

test.each([
  [0, "less than a second"],
  [999, "less than a second"],
  [1000, "1 second"],
  [119_999, "1 minute"],
  [7_200_000, "2 hours"],
  [86_400_000 * 3, "3 days"],
])("%i ms are %j", (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

test("counts have separators and plurals", () => {
  expect([0, 1, 12_345].map((count) => formatCounted(count, "event"))).toEqual([
    "0 events",
    "1 event",
    "12,345 events",
  ]);
});

test("the hour after midnight is 00 of the new day, not 24", () => {
  expect(formatTime("2026-01-02T00:00:05")).toBe("2026-01-02 00:00:05"); // Local time.
});
