import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { silentLogger } from "../../../lib/logger.ts";
import { StoreError } from "../store-error.ts";
import { lossesCountMs } from "./limits.ts";
import { PoolReport } from "./pool-report.ts";

const reset = new StoreError("unavailable", "reset");
const refused = new StoreError("unavailable", "refused");
const lines: string[] = [];
const note = (message: string, { reason = "" }: Readonly<Record<string, unknown>> = {}): void =>
  void lines.push(`${message} ${String(reason)}`.trim());

beforeEach(() => {
  vi.useFakeTimers();
  lines.length = 0;
});

afterEach(() => {
  vi.useRealTimers();
});

test("logs lost connections once, then once that the server is unreachable, even if the pool notices that only after a minute", () => {
  const report = new PoolReport({ ...silentLogger, info: note, warn: note });
  report.lost(reset);
  report.lost(reset);
  vi.advanceTimersByTime(lossesCountMs);
  expect(lines).toEqual(["database connections lost reset"]);
  vi.advanceTimersByTime(60_000);
  report.unreachable(refused);
  report.unreachable(refused);
  report.reached();
  report.reached();
  expect(lines.slice(1)).toEqual(["database unreachable refused", "database reached again"]);
});

test("logs only that the server is unreachable if the pool notices that before the line about lost connections is due", () => {
  const report = new PoolReport({ ...silentLogger, info: note, warn: note });
  report.lost(reset);
  report.unreachable(refused);
  vi.advanceTimersByTime(lossesCountMs);
  report.unreachable(refused);
  report.reached();
  expect(lines).toEqual(["database unreachable refused", "database reached again"]);
});
