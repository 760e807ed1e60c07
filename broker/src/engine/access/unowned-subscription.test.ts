import { afterEach, beforeEach, expect, it } from "vitest";
import { parseSubscriptionId } from "../../domain/subscription.ts";
import { type LogFields, silentLogger } from "../../lib/logger.ts";
import { MemoryApiKeys } from "../../store/memory/memory-api-keys.ts";
import { testCaller } from "../testing/as-caller.ts";
import { TestEngine } from "../testing/test-engine.ts";
import type { Caller } from "./caller.ts";
import { formatKeyCredential } from "./credential.ts";
import { secret, sha256 } from "../testing/key-secret.ts";

const id = "1".repeat(16);

/** A subscription that was made before access was turned on, and a broker that has been started with access since. */
let subscriptionId: string;
let engine: TestEngine;
let warnings: (readonly [string, LogFields | undefined])[];
beforeEach(async () => {
  const open = await TestEngine.start();
  await open.broker.open({ topic: "a", groupId: undefined });
  subscriptionId = await open.subscribe("a");
  await open.stop();
  warnings = [];
  const logger = { ...silentLogger, warn: (text: string, fields?: LogFields) => warnings.push([text, fields]) };
  const apiKeys = new MemoryApiKeys();
  const times = { createdAt: 0, expiresAt: undefined, revokedAt: undefined };
  const key = { id, digest: sha256(secret), principal: "operator", tenant: undefined, roles: ["admin"], ...times };
  await apiKeys.insertApiKey(key, 10);
  const roles = new Map([["admin", [{ effect: "allow", actions: ["admin", "subscribe"] } as const]]]);
  const { store, chain } = open;
  engine = await TestEngine.start({ keys: { apiKeys, roles, sha256 }, store, chain, logger });
  await engine.clock.advance(1_000);
});
afterEach(() => engine.stop());

function admin(): Caller {
  const principal = engine.running.calls.authenticate(formatKeyCredential({ id, secret }), testCaller);
  if (principal instanceof Promise) throw new Error("a key is known at once");
  return { ...testCaller, principal };
}

it("the log says what to do with a subscription from before access was turned on", () => {
  const reason = "it was made without a key, so it belongs to nobody";
  const remedy = "subscribe again with the identifier and the key of an admin, who then owns it";
  const advice = expect.objectContaining({ subscriptionId, reason, remedy });
  expect(warnings).toContainEqual(["subscription suspended", advice]);
});

it.each(["resume", "retry"] as const)(
  "the order %s is refused if access would suspend the subscription again at once",
  async (kind) => {
    for (const isDryRun of [true, false]) {
      const ordering = engine.running.operator.orderSubscription(admin(), subscriptionId, {
        order: { kind },
        isDryRun,
      });
      const [outcome] = await Promise.allSettled([ordering, engine.clock.advance(1_000)]);
      const refused = { code: 100_702, message: expect.stringContaining("belongs to nobody") };
      expect(outcome).toMatchObject({ status: "rejected", reason: refused });
    }
    const found = await engine.store.findSubscription(parseSubscriptionId(subscriptionId));
    expect(found?.state).toBe("suspended");
  },
);
