import { expect, it } from "vitest";
import { type Logger, type LogFields, silentLogger } from "../../lib/logger.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { ReceiverFailures } from "./receiver-failures.ts";

function setUp() {
  const clock = new VirtualClock();
  const failures = new ReceiverFailures(clock);
  const lines: LogFields[] = [];
  const note = (message: string, fields: LogFields = {}): void => void lines.push({ message, ...fields });
  const logger: Logger = { ...silentLogger, info: note, warn: note };
  return {
    clock,
    lines,
    fail: (url: string) => failures.failed(url, { logger, fields: { reason: "500" } }),
    accept: (url: string) => failures.accepted(url, logger),
    takeLines: () => lines.splice(0),
  };
}

const url = "https://user:hunter2@receiver.example:8443/hunter2?t=hunter2";
const receiver = "receiver.example:8443";

it("logs the first failure at once, then one line a minute with the count, and once that the receiver works again", async () => {
  const { clock, fail, accept, takeLines } = setUp();
  fail(url);
  expect(takeLines()).toEqual([{ message: "delivery failed", receiver, failures: 1, reason: "500" }]);
  for (let index = 0; index < 59; index += 1) {
    await clock.advance(1_000);
    fail(url);
  }
  expect(takeLines()).toEqual([]);
  await clock.advance(1_000);
  fail(url);
  expect(takeLines()).toEqual([{ message: "delivery failed", receiver, failures: 60, reason: "500" }]);
  accept(url);
  accept(url);
  expect(takeLines()).toEqual([{ message: "delivery works again", receiver, failures: 61 }]);
});

it("counts urls of one host and port as one receiver", () => {
  const { fail, takeLines } = setUp();
  for (const path of ["/a", "/b", "/c?t=1"]) fail(`http://one${path}`);
  fail("http://one:81/a");
  fail("http://two/a");
  expect(takeLines().map((line) => line["receiver"])).toEqual(["one", "one:81", "two"]);
});

it("logs one failure and one recovery a minute when a receiver alternates", async () => {
  const { clock, fail, accept, takeLines } = setUp();
  for (let second = 0; second < 300; second += 1) {
    fail("http://one/bad");
    accept("http://one/good");
    await clock.advance(1_000);
  }
  const messages = takeLines().map((line) => line["message"]);
  expect(messages).toEqual(Array.from({ length: 5 }, () => ["delivery failed", "delivery works again"]).flat());
});

it("logs nothing about a receiver that always accepts while another fails", () => {
  const { accept, fail, takeLines } = setUp();
  fail("http://two/");
  takeLines();
  accept("http://one/");
  expect(takeLines()).toEqual([]);
});

it("drops the oldest receiver when too many fail", () => {
  const { fail, takeLines } = setUp();
  for (let index = 0; index <= 10_000; index += 1) fail(`http://host-${index}/`);
  takeLines();
  fail("http://host-1/");
  expect(takeLines()).toEqual([]);
  fail("http://host-0/");
  expect(takeLines()).toMatchObject([{ receiver: "host-0", failures: 1 }]);
});
