import { expect, it } from "vitest";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { TestEngine } from "../testing/test-engine.ts";

it("health reports at a start that subscriptions cannot be read, until their delivery has started", async () => {
  const store = createMemoryStore();
  const engine = await TestEngine.start({ store });
  await engine.broker.open({ topic: parseTopicName("a"), groupId: undefined });
  await engine.subscribe("a");
  await engine.rebuild();
  const list = store.listSubscriptions.bind(store);
  store.listSubscriptions = () => Promise.reject(new Error("disk I/O error"));
  await engine.broker.start();
  await engine.clock.settle();
  const reason = "its subscriptions cannot be read: disk I/O error";
  expect(engine.running.groupHealth()).toMatchObject([{ ready: false, reason }]);
  store.listSubscriptions = list;
  await engine.clock.advance(5_000);
  expect(engine.running.groupHealth()).toMatchObject([{ ready: true, subscriptions: 1 }]);
  await engine.stop();
});
