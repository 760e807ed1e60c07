import { beforeEach, describe, expect, it } from "vitest";
import { type LogFields, silentLogger } from "../../lib/logger.ts";
import { testStore } from "../../ports/store.contract.ts";
import { subscriptionOf, webhookTo } from "../../ports/store-examples.contract.ts";
import { createMemoryStore } from "../memory/memory-store.ts";
import { createSqlStore } from "../sql/sql-store.ts";
import { migratedFile } from "../sql/migrations/migrated-file.contract.ts";
import { SecretBox } from "./secret-box.ts";
import { createSealedStore } from "./sealed-store.ts";
import { keysOf } from "./testing/keys.ts";

const options = { box: new SecretBox(keysOf("new", "old")), logger: silentLogger };
testStore("sealed memory", async () => createSealedStore(createMemoryStore(), options));
testStore("sealed SQLite", async () => createSealedStore(createSqlStore({ file: await migratedFile() }), options));

describe("a sealed store", () => {
  const one = {
    ...subscriptionOf(1, { delivery: webhookTo({ secret: "the first secret" }) }),
    failedAttempts: 0,
    failedMs: 0,
    failingSince: 0,
    retryAt: 0,
  };
  const two = subscriptionOf(2, { delivery: webhookTo({ secret: "the second secret" }) });
  let lines: { readonly message: string; readonly fields: LogFields | undefined }[];
  let inner: ReturnType<typeof createMemoryStore>;

  beforeEach(() => {
    lines = [];
    inner = createMemoryStore();
  });

  const note = (message: string, fields?: LogFields): void => void lines.push({ message, fields });
  const open = (...names: readonly [string, ...string[]]) => {
    const logger = { ...silentLogger, info: note, error: note };
    return createSealedStore(inner, { box: new SecretBox(keysOf(...names)), logger });
  };
  const keptSecret = async (number: number) => {
    const { delivery } = (await inner.findSubscription(subscriptionOf(number).id)) ?? subscriptionOf(number);
    return (delivery.kind === "webhook" && delivery.secret) || "";
  };

  it("an update seals the secret again, or removes it if the update has none", async () => {
    const store = open("new");
    await store.insertSubscription(one, 0);
    const before = await keptSecret(1);
    const elsewhere = { ...one, delivery: { ...one.delivery, url: "http://new/" } };
    await store.updateSubscription(one, elsewhere);
    expect(await keptSecret(1)).not.toBe(before);
    expect(await store.findSubscription(one.id)).toEqual({ ...elsewhere, epoch: 1 });
    const unsigned = { ...one, delivery: webhookTo({ secret: undefined }) };
    await store.updateSubscription({ ...one, epoch: 1 }, unsigned);
    expect(await keptSecret(1)).toBe("");
    expect(await store.findSubscription(one.id)).toEqual({ ...unsigned, epoch: 2 });
  });

  it("returns a subscription as locked and without a secret if no key decrypts its secret, and logs it once", async () => {
    await open("old").insertSubscription(one, 0);
    const store = open("new");
    await store.insertSubscription(two, 0);
    const locked = { ...one, delivery: webhookTo({ secret: undefined }), state: "locked" };
    expect(await store.listSubscriptions()).toEqual([locked, two]);
    expect(await store.findSubscription(one.id)).toEqual(locked);
    expect(await store.findSubscriptions([one.id, two.id])).toEqual([locked, two]);
    expect(lines).toEqual([
      {
        message: "subscriptions not delivered: their secrets cannot be decrypted",
        fields: expect.objectContaining({
          count: 1,
          subscriptionId: one.id,
          reason: expect.stringMatching(/^its key /),
        }),
      },
    ]);
    await store.updateSubscription(one, one);
    expect(await store.findSubscription(one.id)).toEqual({ ...one, epoch: 1 });
  });

  it.each(["paused", "suspended"] as const)(
    "keeps the state %s of a locked subscription as heldState",
    async (state) => {
      await open("old").insertSubscription(one, 0);
      await inner.moveSubscription(one, { state }, 0);
      expect(await open("new").findSubscription(one.id)).toMatchObject({ state: "locked", heldState: state });
      expect(await open("old").findSubscription(one.id)).toMatchObject({ state });
    },
  );

  it("counts the locked subscriptions that it has read, until they get a new secret or are removed", async () => {
    for (const number of [1, 2, 3, 4])
      await open("old").insertSubscription(subscriptionOf(number, { delivery: two.delivery }), 0);
    await open("new").insertSubscription(subscriptionOf(5, { delivery: two.delivery }), 0);
    await inner.moveSubscription(subscriptionOf(4), { state: "paused" }, 0);
    const store = open("new");
    await store.listSubscriptions();
    const paused = { groupId: two.groupId, state: "paused", count: 1 };
    const locked = (count: number) => [paused, { groupId: two.groupId, state: "locked", count }];
    expect(await store.countHeld()).toEqual(locked(4));
    await open("new").updateSubscription(subscriptionOf(1), { state: "active", delivery: two.delivery });
    await inner.deleteSubscription(subscriptionOf(2));
    await inner.updateSubscription(subscriptionOf(3), { state: "active", delivery: webhookTo({ secret: undefined }) });
    expect(await store.countHeld()).toEqual(locked(1));
    expect(lines.filter(({ message }) => message.includes("cannot be decrypted"))).toHaveLength(1);
    expect(await store.countHeld()).toEqual(locked(1));
  });

  it("locks a subscription whose sealed secret belongs to another subscription", async () => {
    const store = open("new");
    await store.insertSubscription(one, 0);
    await store.insertSubscription(two, 0);
    await inner.updateSubscription(two, { ...two, delivery: webhookTo({ secret: await keptSecret(1) }) });
    expect(await store.findSubscription(two.id)).toMatchObject({ state: "locked", delivery: { secret: undefined } });
  });

  it("reseals secrets with the newest key at start, so that the older key can be removed", async () => {
    const many = Array.from({ length: 450 }, (_, index) =>
      subscriptionOf(index + 1, { delivery: webhookTo({ secret: `secret ${index}` }) }),
    );
    const old = open("old");
    for (const subscription of many) await old.insertSubscription(subscription, 0);
    await inner.insertSubscription(subscriptionOf(999, { delivery: webhookTo({ secret: "never sealed" }) }), 0);
    const both = open("new", "old");
    await both.start();
    expect(lines).toEqual([
      { message: "secrets encrypted again with the newest key", fields: { subscriptions: 450, left: 0 } },
    ]);
    await both.start();
    expect(lines).toHaveLength(1);
    expect((await open("new").listSubscriptions()).slice(0, 450)).toEqual(many);
    expect(await keptSecret(999)).toBe("never sealed");
  });

  it("reads the subscriptions at start, in pages, only if the key file has older keys", async () => {
    const total = 450;
    const pages: number[] = [];
    const list = inner.listSubscriptions.bind(inner);
    inner.listSubscriptions = async (page) => {
      const rows = await list(page);
      pages.push(rows.length);
      return rows;
    };
    const before = open("old");
    for (let number = 1; number <= total; number += 1) {
      await before.insertSubscription(subscriptionOf(number, { delivery: webhookTo({ secret: "a secret" }) }), 0);
    }
    await before.start();
    expect(pages).toEqual([]);
    await open("new", "old").start();
    expect(pages).toEqual([200, 200, 50]);
    expect(lines.at(-1)).toMatchObject({ fields: { subscriptions: total, left: 0 } });
  });
});
