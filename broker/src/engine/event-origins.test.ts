import { afterEach, expect, it } from "vitest";
import type { Ledger } from "../ports/ledger.ts";
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

it("a chain that gives no times delays a batch of CloudEvents once, not once for the block of each event", async () => {
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

it.each([0, 100])(
  "if the chain refuses one block's time after %i ms, the other CloudEvents of a batch still have their times",
  async (delayMs) => {
    engine = await TestEngine.start();
    const id = await pausedWith("a", 20);
    engine.readBlock = async () => {
      engine.readBlock = undefined;
      if (delayMs > 0) await new Promise<void>((resolve) => engine.clock.after(delayMs, resolve));
      throw new Error("429");
    };
    await order(id, "resume");
    await engine.clock.advance(1_000);
    expect(timesSent()).toEqual([undefined, ...Array.from({ length: 19 }, () => expect.any(Number))]);
  },
);

it("if an earlier read hangs, an event gets its time once the chain has answered a later read", async () => {
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

it("if the reads of a batch hang, the batch waits only once, even if the chain answers another reader meanwhile", async () => {
  engine = await TestEngine.start();
  const hanging = await pausedWith("a", 20);
  const oldHead = engine.chain.head;
  const readBlock: Ledger["readBlock"] = (number) =>
    number <= oldHead ? new Promise(() => {}) : Promise.resolve(engine.chain.find(number));
  await pausedWith("b", 1).then((id) => order(id, "resume"));
  engine.readBlock = readBlock;
  await order(hanging, "resume");
  for (let second = 0; second < 6; second += 1) {
    await engine.publish("b", "a block that the chain gives");
    await engine.clock.advance(1_000);
  }
  const times = timesSent();
  expect(times.filter((time) => time === undefined)).toHaveLength(20);
  expect(times.filter((time) => time !== undefined)).toHaveLength(7);
});

it("if the chain refuses the time of each block, a batch waits five seconds in all, not once for each block", async () => {
  engine = await TestEngine.start();
  const id = await pausedWith("a", 20);
  let reads = 0;
  engine.readBlock = async () => {
    reads += 1;
    await new Promise<void>((resolve) => engine.clock.after(900, resolve));
    throw new Error("429");
  };
  await order(id, "resume");
  await engine.clock.advance(5_000);
  expect(timesSent()).toEqual(Array.from({ length: 20 }, () => undefined));
  expect(reads).toBe(5);
});

it("a redelivery of several dead letters waits once for a chain that hangs", async () => {
  engine = await TestEngine.start();
  await engine.broker.open({ topic: "a", groupId: undefined });
  engine.readBlock = () => new Promise(() => {});
  let status: "failed" | "accepted" = "failed";
  engine.sink.receive("http://receiver/", () => (status === "failed" ? { status, reason: "500" } : { status }));
  const id = await engine.subscribe("a", { options: { form: "cloudevents", onFailure: "skip", attemptsMax: 1 } });
  await engine.publishMany("a", 3);
  await engine.clock.advance(60_000);
  status = "accepted";
  const redeliver = { kind: "redeliver", eventId: undefined } as const;
  const work = engine.broker.operator.orderSubscription(testCaller, id, { order: redeliver, isDryRun: false });
  await engine.clock.advance(6_000);
  expect(await work).toMatchObject({ events: 3 });
});
