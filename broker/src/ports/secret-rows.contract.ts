import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { NodeId } from "../domain/node.ts";
import type { SecretRows } from "./secret-rows.ts";
import type { Store } from "./store.ts";
import { subscriptionOf, webhookTo } from "./store-examples.contract.ts";

const node = "00000000-0000-4000-9000-000000000001" as NodeId; // Any UUID is valid.

/** The guarantees of the SecretRows port. `create` returns an empty store that is not started. */
export function testSecretRows(name: string, create: () => Promise<Store & SecretRows>): void {
  describe(`${name} keeps the contract of secret rows`, () => {
    let store: Store & SecretRows;
    beforeEach(async () => {
      store = await create();
      await store.start();
    });
    afterEach(async () => store.stop());

    it("replaces each secret that still has the given value, at any epoch, and changes nothing else", async () => {
      const given = [1, 2, 3].map((number) =>
        subscriptionOf(number, { delivery: webhookTo({ secret: `old ${number}` }), owner: node, epoch: number }),
      );
      for (const subscription of given) await store.insertSubscription(subscription, 0);
      await store.insertSubscription(subscriptionOf(4, { delivery: webhookTo({ secret: undefined }) }), 0);
      const unknown = [4, 5].map((number) => ({ id: subscriptionOf(number).id, from: "old", to: "new" }));
      const changes = given.map(({ id }, index) => ({
        id,
        from: index === 1 ? "older" : `old ${index + 1}`,
        to: "new",
      }));
      expect(await store.replaceSecrets([...changes, ...unknown])).toBe(2);
      const rows = await store.listSubscriptions();
      expect(rows.map(({ delivery }) => delivery)).toEqual(
        ["new", "old 2", "new", undefined].map((secret) => webhookTo({ secret })),
      );
      expect(rows[0]).toEqual({ ...given[0], delivery: webhookTo({ secret: "new" }) });
      expect(await store.replaceSecrets([])).toBe(0);
    });
  });
}
