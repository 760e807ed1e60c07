import { afterEach, expect, it } from "vitest";
import type { AttemptOutcome } from "../../ports/sink.ts";
import { testCaller } from "../testing/as-caller.ts";
import { TestEngine } from "../testing/test-engine.ts";

let engine: TestEngine;
afterEach(() => engine.stop());

const lag = () => engine.broker.groupHealth()[0]?.lag;

it("measures the age of the oldest waiting event, and how many events wait", async () => {
  engine = await TestEngine.start({ readMemory: () => 1 });
  const { broker, clock, sink } = engine;
  await broker.open({ topic: "a", groupId: undefined });
  await broker.open({ topic: "b", groupId: undefined });
  let outcome: AttemptOutcome = { status: "failed", reason: "500" };
  sink.receive("http://down/", () => outcome);
  await engine.subscribe("a", { url: "http://down/" });
  await engine.subscribe("#");
  await clock.advance(10_000);
  expect(lag()).toEqual({ events: 0, seconds: 0 });

  await engine.publishMany("a", 3);
  await engine.publishMany("b", 5);
  await clock.advance(60_000);
  expect(lag()?.events).toBe(3);
  expect(lag()?.seconds).toBeGreaterThanOrEqual(50);
  expect(lag()?.seconds).toBeLessThanOrEqual(60);

  outcome = { status: "accepted" };
  await clock.advance(10 * 60_000);
  expect(lag()).toEqual({ events: 0, seconds: 0 });
});

it("shows the most events that wait for one subscription, even when another waits for an older event", async () => {
  engine = await TestEngine.start({ readMemory: () => 1 });
  const { broker, clock, sink } = engine;
  for (const topic of ["old", "many"]) await broker.open({ topic, groupId: undefined });
  sink.receive("http://down/", () => ({ status: "failed", reason: "500" }));
  await engine.subscribe("old", { url: "http://down/" });
  await engine.subscribe("many", { url: "http://down/" });
  await engine.subscribe("many", { url: "http://down/", offset: "OFFSET_FIRST" });
  await engine.publishMany("old", 1);
  await clock.advance(60_000);
  await engine.publishMany("many", 12);
  await clock.advance(20_000);
  expect(lag()?.events).toBe(12);
  expect(lag()?.seconds).toBeGreaterThanOrEqual(70);
  expect(broker.operator.listFigures(testCaller).at(-1)?.lagEvents).toBe(12);
});

it("lets the age of the oldest waiting event grow while the chain does not give the time of a block", async () => {
  engine = await TestEngine.start({ readMemory: () => 1 });
  const { broker, clock, sink } = engine;
  await broker.open({ topic: "a", groupId: undefined });
  const failed: AttemptOutcome = { status: "failed", reason: "500" };
  let accepts = 0;
  sink.receive("http://down/", () => ((accepts -= 1) < 0 ? failed : { status: "accepted" }));
  await engine.subscribe("a", { url: "http://down/" });
  await engine.publishMany("a", 1);
  await clock.advance(60_000);
  await engine.publishMany("a", 1);
  await clock.advance(10_000);
  const before = lag()?.seconds ?? 0;
  engine.readBlock = () => Promise.reject(new Error("the connection was refused"));
  await clock.advance(300_000);
  expect(lag()).toEqual({ events: 2, seconds: before + 300 });

  accepts = 1;
  await clock.advance(300_000);
  expect(lag()).toEqual({ events: 1, seconds: before + 600 });
  accepts = 1;
  await clock.advance(600_000);
  expect(lag()).toEqual({ events: 0, seconds: 0 });

  await engine.publishMany("a", 1);
  await clock.advance(20_000);
  expect(lag()).toEqual({ events: 1, seconds: undefined });
});

it("the age of the oldest waiting event does not grow while block times cannot be read but events are delivered", async () => {
  engine = await TestEngine.start({ readMemory: () => 1 });
  const { broker, clock, sink } = engine;
  await broker.open({ topic: "a", groupId: undefined });
  const attempts: ((outcome: AttemptOutcome) => void)[] = [];
  sink.receive("http://slow/", () => new Promise((resolve) => attempts.push(resolve)));
  await engine.subscribe("a", { url: "http://slow/" });
  await engine.publishMany("a", 1);
  await clock.advance(10_000);
  expect(lag()).toEqual({ events: 1, seconds: expect.any(Number) });
  engine.readBlock = () => Promise.reject(new Error("the connection was refused"));
  for (let measurements = 1; measurements <= 40; measurements += 1) {
    await engine.publishMany("a", 1);
    attempts.pop()?.({ status: "accepted" });
    await clock.advance(10_000);
    expect(lag()?.events).toBe(1);
    expect(lag()?.seconds).toBeLessThanOrEqual(20);
  }
});
