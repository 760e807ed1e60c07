import { expect, test } from "vitest";
import { createLogger, type LoggerOptions } from "./logger.ts";

function record(options: Omit<LoggerOptions, "destination">) {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  return { lines, logger: createLogger({ ...options, destination }) };
}

test("a line is one JSON object with level, time, message and fields", () => {
  const { lines, logger } = record({ level: "info", format: "json" });
  logger.child({ groupId: "1" }).info("event published", { topic: "a", count: 3 });
  expect(lines).toHaveLength(1);
  const line: unknown = JSON.parse(lines[0] ?? "");
  expect(line).toEqual({
    level: "info",
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    groupId: "1",
    topic: "a",
    count: 3,
    message: "event published",
  });
});

test("removes secrets from the fields of a line, and from those that a child logger adds", () => {
  const { lines, logger } = record({ level: "info", format: "json" });
  logger.child({ secret: "hunter2", url: "https://u:hunter2@h/" }).warn("delivery failed", {
    subscription: { secret: "hunter2", url: "https://h/?t=hunter2" },
  });
  expect(lines.join("")).toContain("delivery failed");
  expect(lines.join("")).not.toContain("hunter2");
});

test.each([
  ["debug", ["debug", "info", "warn", "error"]],
  ["warn", ["warn", "error"]],
  ["silent", []],
] as const)("level %s logs %j", (level, shown) => {
  const { lines, logger } = record({ level, format: "json" });
  for (const each of ["debug", "info", "warn", "error"] as const) logger[each](each);
  expect(lines.map((line) => /"level":"(\w+)"/.exec(line)?.[1])).toEqual(shown);
});

test("the text format writes the fields on the line, and the stack of an error below it", () => {
  const { lines, logger } = record({ level: "info", format: "text" });
  logger.info("event published", { topic: "a b", count: 3 });
  logger.error("delivery failed", { error: new Error("no route") });
  expect(lines[0]).toMatch(
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info {2}event published {2}topic="a b" {2}count=3\n$/,
  );
  expect(lines[1]).toMatch(
    /error delivery failed {2}error=\{"name":"Error","message":"no route"\}\n {2}Error: no route\n {6}at /,
  );
});

test("keeps a field with a line break on one line of JSON", () => {
  const { lines, logger } = record({ level: "info", format: "json" });
  logger.info("event published", { topic: "a\n{}" });
  expect(lines[0]?.indexOf("\n")).toBe((lines[0]?.length ?? 0) - 1);
});

test("in the text format, no text from a client can move the cursor or look like another log line", () => {
  const { lines, logger } = record({ level: "info", format: "text" });
  const forged = "2026-11-22T10:21:07.031Z info  log-in";
  logger.info("MQTT connection refused", { clientId: `a\u009b2J\u2028${forged}` });
  logger.error("blocks not read", { error: new Error(`no\r\n${forged}\u001b[2J\u009b2J`) });
  expect(lines.join("")).not.toMatch(/(?!\n)[\p{Cc}\p{Zl}]/u);
  expect(lines.join("").split("\n")).not.toContainEqual(expect.stringMatching(/^2026-11-22T10:21:07/));
});
