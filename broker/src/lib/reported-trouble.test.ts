import { expect, it } from "vitest";
import { type Logger, silentLogger } from "./logger.ts";
import { ReportedTrouble } from "./reported-trouble.ts";

function setUp(recoveryMessage?: string) {
  const lines: string[] = [];
  const write = (level: string) => (message: string) => void lines.push(`${level} ${message}`);
  const logger: Logger = { ...silentLogger, info: write("info"), warn: write("warn"), error: write("error") };
  return { lines, trouble: new ReportedTrouble(logger, "not done", recoveryMessage) };
}

it("logs each reason once, even if reasons alternate, and logs the recovery", () => {
  const { lines, trouble } = setUp("done again");
  for (let turn = 0; turn < 5; turn += 1) {
    trouble.failed(new Error("away"));
    trouble.failed(new Error("busy"));
  }
  expect(lines).toEqual(["warn not done", "warn not done"]);
  trouble.done();
  trouble.done();
  expect(lines.slice(2)).toEqual(["info done again"]);
});

it("logs the same reason again after a recovery", () => {
  const { lines, trouble } = setUp();
  for (let turn = 0; turn < 2; turn += 1) {
    trouble.failed(new Error("away"));
    expect(trouble.reason).toBe("away");
    trouble.done();
    expect(trouble.reason).toBeUndefined();
  }
  expect(lines).toEqual(["warn not done", "warn not done"]);
});

it("logs few lines if each attempt fails for another reason", () => {
  const { lines, trouble } = setUp();
  for (let turn = 0; turn < 100; turn += 1) trouble.failed(`reason ${turn}`);
  expect(lines).toHaveLength(4);
});
