import { afterEach, expect, it } from "vitest";
import { testCaller } from "./testing/as-caller.ts";
import { TestEngine } from "./testing/test-engine.ts";

let engine: TestEngine;
afterEach(() => engine.stop());

async function order(id: string, kind: "pause" | "resume"): Promise<void> {
  await engine.broker.operator.orderSubscription(testCaller, id, { order: { kind }, isDryRun: false });
}

/** Times of the CloudEvents that the receiver got, by sequence. */
function timesSent(): readonly (number | undefined)[] {
  return engine.sink.attempts.flatMap(({ batch = [] }) => batch.map(({ origin }) => origin?.time));
}

/** A subscription to a new topic, with this many events to deliver once it is resumed. */
async function pausedWith(topic: string, eventCount: number): Promise<string> {
  await engine.broker.open({ topic, groupId: undefined });
  const id = await engine.subscribe(topic, { options: { form: "cloudevents", batchEvents: 100 } });
  await order(id, "pause");
  await engine.publishMany(topic, eventCount);
  return id;
}

it("a chain that gives no times delays a batch of CloudEvents once, not for the block of each event", async () => {
  engine = await TestEngine.start();
  const id = await pausedWith("a", 20);
  engine.readBlock = () => new Promise(() => {});
  await order(id, "resume");
  await engine.clock.advance(11_000);
  expect(timesSent()).toEqual(Array.from({ length: 20 }, () => undefined));
  engine.readBlock = undefined;
  await engine.clock.advance(11_000);
  await engine.publish("a", "with a time");
  await engine.clock.advance(100);
  expect(timesSent().at(-1)).toEqual(expect.any(Number));
});

it("a chain that quickly refuses one time leaves the other CloudEvents of a batch theirs", async () => {
  engine = await TestEngine.start();
  const id = await pausedWith("a", 20);
  engine.readBlock = async () => {
    engine.readBlock = undefined;
    await new Promise<void>((resolve) => engine.clock.after(100, resolve));
    throw new Error("429");
  };
  await order(id, "resume");
  await engine.clock.advance(1_000);
  expect(timesSent()).toEqual([undefined, ...Array.from({ length: 19 }, () => expect.any(Number))]);
});

it("a read that hangs takes no times from events once the chain has answered a later read", async () => {
  engine = await TestEngine.start();
  const hanging = await pausedWith("a", 1);
  const answered = await pausedWith("b", 1);
  engine.readBlock = () => new Promise(() => {});
  await order(hanging, "resume");
  await engine.clock.advance(4_000);
  engine.readBlock = undefined;
  await order(answered, "resume");
  await engine.clock.advance(2_000);
  expect(timesSent()).toEqual([expect.any(Number), undefined]);
  await engine.publish("b", "after the recovery");
  await engine.clock.advance(100);
  expect(timesSent().at(-1)).toEqual(expect.any(Number));
});
