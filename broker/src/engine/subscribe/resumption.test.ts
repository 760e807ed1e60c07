import { expect, it } from "vitest";
import { parseGroupId } from "../../domain/group-id.ts";
import { type LogFields, silentLogger } from "../../lib/logger.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { TestEngine } from "../testing/test-engine.ts";

it("if a start cannot read subscriptions, health reports it until their delivery has started", async () => {
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

it("logs once each group that has subscriptions but is no longer served", async () => {
  const warnings: (readonly [string, LogFields | undefined])[] = [];
  const logger = { ...silentLogger, warn: (text: string, fields?: LogFields) => warnings.push([text, fields]) };
  const engine = await TestEngine.start({ logger });
  await engine.broker.open({ topic: parseTopicName("a"), groupId: undefined });
  await engine.subscribe("a");
  await engine.rebuild();
  const { store } = engine;
  const list = store.listSubscriptions.bind(store);
  store.listSubscriptions = async (page) =>
    (await list(page)).map((row) => ({ ...row, groupId: parseGroupId("gone") }));
  await engine.broker.start();
  await engine.clock.advance(60_000);
  await engine.stop();
  const remedy = "configure a group with this id again, or unSubscribe them";
  const fields = { groupId: "gone", count: 1, remedy };
  expect(warnings).toEqual([["subscriptions get no events: no group has their groupId", fields]]);
});
