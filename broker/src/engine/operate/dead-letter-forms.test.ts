import { errorCatalogue } from "@stele/wire";
import { afterEach, describe, expect, it } from "vitest";
import type { AccessRule } from "../../domain/access-rule.ts";
import { MemoryApiKeys } from "../../store/memory/memory-api-keys.ts";
import type { Caller } from "../access/caller.ts";
import { formatKeyCredential } from "../access/credential.ts";
import { testCaller } from "../testing/as-caller.ts";
import { TestEngine } from "../testing/test-engine.ts";
import type { DeadLetterOrder } from "./calls.ts";

let engine: TestEngine;
let isBroken: boolean;
afterEach(() => engine.stop());

const page = { after: undefined, limit: 50 };
const redeliver = { order: { kind: "redeliver", eventId: undefined }, isDryRun: false } as const;
const sha256 = (text: string): string => text;
const textOf = (content: Uint8Array): string => new TextDecoder().decode(content);

/** Makes the receiver refuse events while `isBroken` is true. */
function breakReceiver(): void {
  isBroken = true;
  engine.sink.receive("http://receiver/", () =>
    isBroken ? { status: "failed", reason: "answered 500" } : { status: "accepted" },
  );
}

/** Creates a subscription with the given form of callback, and dead letters for the events 1, 2 and 3. */
async function withFormedLetters(form: {
  readonly batchEvents?: number;
  readonly form?: "cloudevents";
}): Promise<string> {
  engine = await TestEngine.start();
  breakReceiver();
  await engine.broker.open({ topic: "a", groupId: undefined });
  const id = await engine.subscribe("a", { options: { onFailure: "skip", attemptsMax: 1, ...form } });
  for (const text of ["1", "2", "3"]) await engine.publish("a", text);
  await engine.clock.advance(5_000);
  isBroken = false;
  engine.sink.attempts.length = 0;
  return id;
}

describe("redeliver", () => {
  it.each([{ batchEvents: 10 }, { batchEvents: 10, form: "cloudevents" as const }])(
    "sends each event of a failed batch as a batch of its own: %j",
    async (form) => {
      const id = await withFormedLetters(form);
      const work = engine.broker.operator.orderSubscription(testCaller, id, redeliver);
      await engine.clock.advance(1_000);
      expect(await work).toMatchObject({ events: 3, deadLetters: { left: 0 } });
      const batches = engine.sink.attempts.map(({ batch = [] }) => batch.map(({ event }) => textOf(event.content)));
      expect(batches).toEqual([["1"], ["2"], ["3"]]);
    },
  );

  it.each([{ form: "cloudevents" as const }, { form: "cloudevents" as const, batchEvents: 2 }])(
    "sends a CloudEvent with a source and a time: %j",
    async (form) => {
      const id = await withFormedLetters(form);
      const work = engine.broker.operator.orderSubscription(testCaller, id, redeliver);
      await engine.clock.advance(1_000);
      await work;
      for (const { origin, batch } of engine.sink.attempts) {
        expect(origin).toMatchObject({ source: expect.stringContaining("0x"), time: expect.any(Number) });
        for (const one of batch ?? []) expect(one.origin).toEqual(origin);
      }
      expect(engine.sink.attempts).toHaveLength(3);
    },
  );
});

describe("dead letters of a tenant", () => {
  const client = ["open", "publish", "subscribe", "unsubscribe", "read"] as const;
  const roles = new Map<string, readonly AccessRule[]>([
    [
      "client",
      [
        { effect: "allow", actions: client, filter: "${tenant}/#" },
        { effect: "allow", actions: ["admin"] },
      ],
    ],
    ["admin", [{ effect: "allow", actions: ["admin"] }]],
  ]);
  const keys = [
    { id: "1".repeat(16), principal: "shop", tenant: "acme", roles: ["client"] },
    { id: "2".repeat(16), principal: "shop", tenant: "globex", roles: ["client"] },
    { id: "3".repeat(16), principal: "operator", tenant: undefined, roles: ["admin"] },
  ] as const;
  const [acme, globex, operator] = keys;
  const secret = "s".repeat(43);

  function by({ id }: { readonly id: string }): Caller {
    const principal = engine.running.calls.authenticate(formatKeyCredential({ id, secret }), testCaller);
    if (principal instanceof Promise) throw new Error("an API key must authenticate synchronously");
    return { ...testCaller, principal, protocol: "admin" };
  }

  /** Gives acme and globex one subscription each, with one dead letter. Both tenants use the same names. Returns the ids, acme's first. */
  async function withLetters(): Promise<readonly string[]> {
    const apiKeys = new MemoryApiKeys();
    const times = { createdAt: 0, expiresAt: undefined, revokedAt: undefined };
    for (const key of keys) await apiKeys.insertApiKey({ ...key, digest: sha256(secret), ...times }, 10);
    engine = await TestEngine.start({ keys: { apiKeys, roles, sha256 } });
    breakReceiver();
    for (const tenant of [acme, globex]) {
      const { calls } = engine.running;
      const [topic, groupId] = ["orders", undefined];
      await calls.open(by(tenant), { topic, groupId });
      const order = { format: "RESTful", offset: undefined, secret: undefined, subscriptionId: undefined } as const;
      const options = { onFailure: "skip", attemptsMax: 1 } as const;
      await calls.subscribe(by(tenant), { ...order, topic, groupId, url: "http://receiver/", options });
      const content = new TextEncoder().encode(tenant.tenant);
      calls.submit(by(tenant), { topic, groupId, content, extensions: [] }, () => {});
      await engine.clock.advance(2_000);
    }
    isBroken = false;
    engine.sink.attempts.length = 0;
    return (await engine.store.listSubscriptions()).map(({ id }) => id);
  }

  it("are listed for an operator with the real names of their topics, and delivered again with the tenant's names", async () => {
    const [id = ""] = await withLetters();
    const { items } = await engine.running.operator.listDeadLetters(by(operator), id, page);
    expect(items).toMatchObject([{ topic: "acme/orders", reason: "answered 500" }]);
    const work = engine.running.operator.orderSubscription(by(operator), id, redeliver);
    await engine.clock.advance(1_000);
    expect(await work).toMatchObject({ events: 1, deadLetters: { left: 0 } });
    expect(engine.sink.attempts.map(({ event }) => [event.topic, textOf(event.content)])).toEqual([["orders", "acme"]]);
  });

  it.each([acme, globex])("cannot be listed, redelivered or discarded by $tenant", async (tenant) => {
    const ids = await withLetters();
    const refused = expect.objectContaining({ code: errorCatalogue.accessDenied.code });
    const ask = engine.running.operator;
    for (const id of ids) {
      await expect(ask.listDeadLetters(by(tenant), id, page)).rejects.toEqual(refused);
      const kinds = ["redeliver", "discard"] satisfies DeadLetterOrder["kind"][];
      for (const kind of kinds) {
        for (const isDryRun of [true, false]) {
          const call = { order: { kind, eventId: undefined }, isDryRun };
          await expect(ask.orderSubscription(by(tenant), id, call)).rejects.toEqual(refused);
          const all = ask.orderSubscriptions(by(tenant), {}, { ...page, ...call });
          await expect(all).rejects.toEqual(refused);
        }
      }
      expect((await ask.listDeadLetters(by(operator), id, page)).items).toHaveLength(1);
    }
    expect(engine.sink.attempts).toEqual([]);
  });
});
