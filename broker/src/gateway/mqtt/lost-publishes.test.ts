import { noMqttMetrics } from "./metrics.ts";
import { BrokerError } from "@stele/wire";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type LogFields, type Logger, silentLogger } from "../../lib/logger.ts";
import { LostPublishes } from "./lost-publishes.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("logs the first refusal at once, with a shortened topic; the next line, a second later, has the number of refusals in between", () => {
  const lines: (LogFields | undefined)[] = [];
  const logger: Logger = { ...silentLogger, warn: (_, fields) => void lines.push(fields) };
  const losses = new LostPublishes(logger, noMqttMetrics);
  const busy = new BrokerError("busy");
  const names = { clientId: "meter", address: "192.0.2.1" };
  for (let index = 0; index < 100; index += 1) losses.lost("t".repeat(60_000), busy, names);
  const first = { topic: "t".repeat(100), code: busy.code, reason: busy.message, ...names };
  expect(lines).toEqual([first]);
  vi.advanceTimersByTime(1_000);
  losses.lost("t", busy, names);
  expect(lines).toEqual([first, { ...first, topic: "t", omitted: 99 }]);
});
