import { afterEach, expect, it, onTestFinished, vi } from "vitest";
import { formatKeyCredential } from "../../engine/access/credential.ts";
import { keysStaleMsMax } from "../../engine/access/key-ring.ts";
import type { ApiKey } from "../../ports/api-keys.ts";
import { MemoryApiKeys } from "../../store/memory/memory-api-keys.ts";
import { RawClient } from "./testing/raw-client.ts";
import { StompWorld, type StompWorldOptions } from "./testing/stomp-world.ts";
import { secret } from "../../engine/testing/key-secret.ts";

const id = "1".repeat(16);
const passcode = formatKeyCredential({ id, secret });
const roles = new Map([["all", [{ effect: "allow", actions: ["open", "publish"] } as const]]]);
/** How long a key is valid: longer than a client takes to connect. */
const validMs = 2_000;

let world: StompWorld | undefined;
afterEach(async () => {
  await world?.stop();
  world = undefined;
});

let apiKeys: MemoryApiKeys;

async function start(fields: Partial<ApiKey> = {}, options: StompWorldOptions = {}): Promise<number> {
  apiKeys = new MemoryApiKeys();
  const times = { createdAt: 0, expiresAt: undefined, revokedAt: undefined };
  const own = { id, digest: secret, principal: "shop", tenant: undefined, roles: ["all"] };
  await apiKeys.insertApiKey({ ...own, ...times, ...fields }, 10);
  world = await StompWorld.start({ keys: { apiKeys, roles, sha256: (text) => text }, ...options });
  return world.port;
}

it.each([
  ["no credential", {}],
  ["a wrong credential", { login: "x", passcode: "wrong" }],
])("answers a CONNECT with %s by an ERROR, and ignores the frames that follow it", async (_, fields) => {
  const client = await RawClient.open(await start());
  client.send("CONNECT", { "accept-version": "1.2", host: "x", ...fields });
  client.send("SEND", { destination: "a", receipt: "1" }, "x");
  await client.closed;
  expect(client.frames).toMatchObject([{ command: "ERROR", headers: { code: "100701" } }]);
});

it("ends a connection without subscriptions when its key expires", async () => {
  const expiresAt = Date.now() + validMs;
  const client = await RawClient.connect(await start({ expiresAt }), "1.2", { login: "x", passcode });
  expect((await client.next("ERROR")).headers["code"]).toBe("100701");
  await client.closed;
  expect(Date.now()).toBeGreaterThanOrEqual(expiresAt);
});

it("ends a connection without subscriptions after its key is revoked", async () => {
  const client = await RawClient.connect(await start(), "1.2", { login: "x", passcode });
  await apiKeys.revokeApiKey(id, Date.now());
  expect((await client.next("ERROR")).headers["code"]).toBe("100701");
  await client.closed;
});

it("keeps a connection while the keys cannot be read, as nobody knows whether its key is still valid", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const client = await RawClient.connect(await start(), "1.2", { login: "x", passcode });
  apiKeys.listApiKeys = () => Promise.reject(new Error("gone"));
  vi.advanceTimersByTime(2 * keysStaleMsMax);
  client.send("BEGIN", { transaction: "1", receipt: "1" });
  expect((await client.next("RECEIPT")).headers["receipt-id"]).toBe("1");
  client.send("SEND", { destination: "a", receipt: "2" }, "x");
  expect((await client.next("ERROR")).headers["code"]).toBe("200207");
});

it("leaves no timer behind when a connection with a key and heart-beats breaks", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const port = await start({}, { settings: { heartBeatMs: 60_000 } });
  const count = vi.getTimerCount();
  const fields = { login: "x", passcode, "heart-beat": "60000,60000" };
  const client = await RawClient.connect(port, "1.2", fields);
  expect(vi.getTimerCount()).toBe(count + 2);
  client.reset();
  await expect.poll(() => vi.getTimerCount()).toBe(count);
});
