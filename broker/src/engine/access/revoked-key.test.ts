import { afterEach, beforeEach, expect, it } from "vitest";
import { createDeferred } from "../../lib/deferred.ts";
import { MemoryApiKeys } from "../../store/memory/memory-api-keys.ts";
import { testCaller } from "../testing/as-caller.ts";
import { secret, sha256 } from "../testing/key-secret.ts";
import { TestEngine } from "../testing/test-engine.ts";
import type { Caller } from "./caller.ts";
import { formatKeyCredential } from "./credential.ts";

const ids = { leaked: "1".repeat(16), other: "2".repeat(16) } as const;

let keys: MemoryApiKeys;
let engine: TestEngine;
beforeEach(async () => {
  keys = new MemoryApiKeys();
  const own = { digest: sha256(secret), principal: "shop", tenant: undefined, roles: ["client"] };
  const times = { createdAt: 0, expiresAt: undefined, revokedAt: undefined };
  for (const id of Object.values(ids)) await keys.insertApiKey({ id, ...own, ...times }, 10);
  const roles = new Map([["client", [{ effect: "allow", actions: ["open", "subscribe"] } as const]]]);
  engine = await TestEngine.start({ keys: { apiKeys: keys, roles, sha256 } });
});
afterEach(() => engine.stop());

function by(name: keyof typeof ids): Caller {
  const principal = engine.running.calls.authenticate(formatKeyCredential({ id: ids[name], secret }), testCaller);
  if (principal instanceof Promise) throw new Error("a key is known at once");
  return { ...testCaller, principal };
}

const request = { topic: "#", groupId: undefined, format: "RESTful", offset: undefined, secret: undefined } as const;
const subscribe = (name: keyof typeof ids, url: string, subscriptionId?: string): Promise<string> =>
  engine.running.calls.subscribe(by(name), { ...request, url, subscriptionId });

it.each(["makes no subscription", "changes no subscription"])(
  "%s by a key that is revoked while the receiver is asked for its consent, even if the owner has another key",
  async (what) => {
    const id = what.startsWith("changes") ? await subscribe("other", "http://own/") : undefined;
    const before = await engine.store.listSubscriptions();
    const consent = createDeferred<void>();
    engine.sink.checkTarget = () => consent.promise;
    const outcome = subscribe("leaked", "http://foreign/", id).catch(({ code }: { code: number }) => code);
    await engine.clock.settle();
    await keys.revokeApiKey(ids.leaked, engine.clock.now());
    await engine.clock.advance(1_000);
    consent.resolve();
    await engine.clock.settle();
    expect(await outcome).toBe(100_701);
    expect(await engine.store.listSubscriptions()).toEqual(before);
  },
);
