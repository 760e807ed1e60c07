import { expect, onTestFinished, test, vi } from "vitest";
import { parseRetryAfter, retryAfterMsMax } from "./retry-after.ts";

const now = Date.UTC(2026, 10, 6, 8, 49, 37);

test.each([
  [undefined, undefined],
  ["0", 0],
  ["120", 120_000],
  [" 5 ", 5000],
  ["999999999999", retryAfterMsMax],
  ["9".repeat(400), retryAfterMsMax],
  ["Fri, 06 Nov 2026 08:49:47 GMT", 10_000],
  ["Friday, 06-Nov-26 08:49:47 GMT", 10_000],
  ["Fri, 06 Nov 2026 08:49:27 GMT", 0],
  ["Fri, 06 Nov 2099 08:49:27 GMT", retryAfterMsMax],
  ["-5", undefined],
  ["1.5", undefined],
  ["soon", undefined],
  ["2026-11-06", undefined],
  ["", undefined],
])("%s asks for %s ms", (header, waitMs) => {
  expect(parseRetryAfter(header, now)).toBe(waitMs);
});

test("a date in the form of ANSI C is in GMT, whatever the zone of the machine", () => {
  vi.stubEnv("TZ", "America/New_York");
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(parseRetryAfter("Fri Nov  6 08:49:47 2026", now)).toBe(10_000);
});
