import { BrokerError } from "@stele/wire";
import { expect, it } from "vitest";
import { type LogFields, type Logger, silentLogger } from "../../lib/logger.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { TestEngine } from "../testing/test-engine.ts";

it("logs a bounded number of lines while many subscriptions cannot read their events, and counts the omitted ones", async () => {
  const lines: (LogFields | undefined)[] = [];
  const note = (message: string, fields?: LogFields): void =>
    void (message.startsWith("events or their origins not read") && lines.push(fields));
  const logger: Logger = { ...silentLogger, warn: note, error: note, child: () => logger };
  const store = createMemoryStore();
  const findTopic = store.findTopic.bind(store);
  let isDown = false;
  store.findTopic = async (...place) => {
    if (isDown) throw new BrokerError("storeUnreachable");
    return findTopic(...place);
  };
  const engine = await TestEngine.start({ store, logger });
  await engine.broker.open({ topic: "a", groupId: undefined });
  await engine.publish("a", "1");
  for (let count = 0; count < 40; count += 1) await engine.subscribe("a", { options: { form: "cloudevents" } });
  isDown = true; // The origin of an event contains its topic's address.
  await engine.publish("a", "2");
  await engine.clock.advance(20_000);
  expect(lines.length).toBeLessThan(50);
  expect(lines).toContainEqual(expect.objectContaining({ omitted: expect.any(Number) }));
  isDown = false;
  await engine.stop();
});
