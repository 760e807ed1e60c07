import { expect, it } from "vitest";
import { type LogFields, silentLogger } from "../../lib/logger.ts";
import { MemoryApiKeys } from "../../store/memory/memory-api-keys.ts";
import { TestEngine } from "../testing/test-engine.ts";

it("the log says what to do with a subscription from before access was turned on", async () => {
  const open = await TestEngine.start();
  await open.broker.open({ topic: "a", groupId: undefined });
  const subscriptionId = await open.subscribe("a");
  await open.stop();
  const warnings: (readonly [string, LogFields | undefined])[] = [];
  const logger = { ...silentLogger, warn: (text: string, fields?: LogFields) => warnings.push([text, fields]) };
  const keys = { apiKeys: new MemoryApiKeys(), roles: new Map(), sha256: () => "" };
  const { store, chain } = open;
  const guarded = await TestEngine.start({ keys, store, chain, logger });
  await guarded.clock.advance(1_000);
  await guarded.stop();
  const reason = "it was made without a key, so it belongs to nobody";
  const remedy = "subscribe again with the identifier and the key of an admin, who then owns it";
  const advice = expect.objectContaining({ subscriptionId, reason, remedy });
  expect(warnings).toContainEqual(["subscription suspended", advice]);
});
