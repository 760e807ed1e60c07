import { BrokerError } from "@stele/wire";
import { expect, it, vi } from "vitest";
import { silentLogger } from "../../lib/logger.ts";
import { toFailure } from "./failure.ts";

it("leaves out most lines about transactions that the chain refuses one after another, and says how many", () => {
  vi.useFakeTimers();
  const lines: unknown[] = [];
  const logger = { ...silentLogger, warn: (_: string, fields: unknown) => void lines.push(fields) };
  const fail = (): unknown => toFailure(new BrokerError("transactionFailed"), logger, { operation: "publish" });
  for (let count = 0; count < 1_000; count += 1) fail();
  expect(lines).toHaveLength(100);
  vi.advanceTimersByTime(1_000);
  fail();
  expect(lines[100]).toMatchObject({ operation: "publish", code: 200202, omitted: 900 });
  vi.useRealTimers();
});
