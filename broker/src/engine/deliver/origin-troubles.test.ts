import { BrokerError } from "@stele/wire";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { testCaller } from "../testing/as-caller.ts";
import { TestEngine } from "../testing/test-engine.ts";

let engine: TestEngine;
let id: string;
/** Whether the store fails to read topics: the origin of an event contains its topic's address. */
let isDown: boolean;

beforeEach(async () => {
  const store = createMemoryStore();
  const findTopic = store.findTopic.bind(store);
  store.findTopic = async (...place) => {
    if (isDown) throw new BrokerError("storeUnreachable");
    return findTopic(...place);
  };
  isDown = false;
  engine = await TestEngine.start({ store });
  await engine.broker.open({ topic: "a", groupId: undefined });
  await engine.publish("a", "1");
  id = await engine.subscribe("a", { options: { form: "cloudevents" } });
  await engine.clock.settle();
  isDown = true;
  await engine.publish("a", "2");
  await engine.clock.settle();
  expect(engine.sink.attempts).toEqual([]);
  expect(engine.broker.health()).toMatchObject([{ ready: false, reason: expect.stringContaining(id) }]);
});
afterEach(() => engine.stop());

it("the group is ready again once the worker has read the origin that it could not read before", async () => {
  isDown = false;
  await engine.clock.advance(10_000);
  expect(engine.sink.sequencesOf(id)).toEqual([2]);
  expect(engine.broker.health()).toMatchObject([{ ready: true }]);
});

it("the group is ready again once an operator pauses the subscription that waits for an event's origin", async () => {
  const order = { order: { kind: "pause" }, isDryRun: false } as const;
  const pausing = engine.broker.operator.orderSubscription(testCaller, id, order);
  await engine.clock.advance(1_000);
  await pausing;
  expect(engine.broker.health()).toMatchObject([{ ready: true }]);
});
