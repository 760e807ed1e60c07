import { createHmac, generateKeyPairSync, sign as signWith } from "node:crypto";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { verifySignature, verifyWebhook } from "./verify-webhook.ts";
import { WebhookRefused } from "./webhook-refused.ts";

const event = { topic: "orders", content: "e30=", extensions: {}, eventId: "2cf24dba-59-1124" };
const rest = JSON.stringify({ subscriptionId: "s", event });
const rpc = JSON.stringify({
  jsonrpc: "2.0",
  id: event.eventId,
  method: "onEvent",
  params: { subscriptionId: "s", event },
});
const now = 1_614_265_330_000;

function sign(body: string, key: Buffer, id = event.eventId): Record<string, string> {
  const timestamp = "1614265330";
  const digest = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": `v1,${digest}` };
}

describe("verifyWebhook", () => {
  it.each<readonly [string, Buffer]>([
    ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", Buffer.from("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "base64")],
    ...["plain secret", "Größe", "whsec_", "whsec_not base64!", "whsec_abcde"].map(
      (secret) => [secret, Buffer.from(secret)] as const,
    ),
  ])("verifyWebhook accepts a callback that is signed with the secret %s", async (secret, key) => {
    const webhook = await verifyWebhook(rest, sign(rest, key), { secret, now });
    expect(webhook).toMatchObject({ kind: "event", id: event.eventId, subscriptionId: "s", isJsonRpc: false });
    expect(webhook.events.map((one) => one.json())).toEqual([{}]);
  });

  it("verifyWebhook verifies only 16 of 300 signatures of a request, because anybody may send many with a long body", async () => {
    const verifying = vi.spyOn(crypto.subtle, "verify");
    onTestFinished(() => verifying.mockRestore());
    const signed = sign(rest, Buffer.from("another secret"));
    const signatures = Array.from({ length: 300 }, () => signed["webhook-signature"]).join(" ");
    const verified = verifyWebhook(rest, { ...signed, "webhook-signature": signatures }, { secret: "a secret", now });
    await expect(verified).rejects.toThrow(WebhookRefused);
    expect(verifying).toHaveBeenCalledTimes(16);
  });

  it("verifyWebhook accepts the signature of the Standard Webhooks test vector, and refuses its body", async () => {
    const headers = {
      "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "webhook-timestamp": "1614265330",
      "webhook-signature": "v1,other v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    };
    const verified = verifyWebhook('{"test": 2432232314}', headers, {
      secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
      now,
    });
    await expect(verified).rejects.toThrow("the body is not a callback");
  });

  it("verifyWebhook reads JSON-RPC callbacks, pings, and Headers objects", async () => {
    const headers = new Headers(sign(rpc, Buffer.from("k")));
    expect(await verifyWebhook(Buffer.from(rpc), headers, { secret: ["old", "k"], now })).toMatchObject({
      isJsonRpc: true,
      kind: "event",
    });
    const ping = JSON.stringify({
      subscriptionId: "s",
      ping: "ping-1",
      event: { topic: "", content: "", extensions: {}, eventId: "" },
    });
    const pinged = await verifyWebhook(ping, sign(ping, Buffer.from("k"), "ping-1"), { secret: "k", now });
    expect(pinged).toMatchObject({ kind: "ping", id: "ping-1", events: [] });
  });

  it("verifyWebhook reads the Headers of a package that are no instance of the global class", async () => {
    const headers = new Headers(sign(rest, Buffer.from("k")));
    vi.stubGlobal("Headers", class extends Headers {});
    onTestFinished(() => void vi.unstubAllGlobals());
    expect(await verifySignature(rest, headers, { secret: "k", now })).toBe(event.eventId);
  });

  it.each([
    ["RESTful", { subscriptionId: "s", events: [event, event] }],
    [
      "JsonRPC",
      { jsonrpc: "2.0", id: "b", method: "onEvents", params: { subscriptionId: "s", events: [event, event] } },
    ],
  ])("verifyWebhook reads a batch in the %s form", async (_form, value) => {
    const batch = JSON.stringify(value);
    const webhook = await verifyWebhook(batch, sign(batch, Buffer.from("k"), "b"), { secret: "k", now });
    expect(webhook).toMatchObject({ kind: "batch", id: "b", events: [event, event] });
  });

  it.each([
    ["a CloudEvent", { specversion: "1.0", id: "x" }],
    ["a batch of CloudEvents", [{ specversion: "1.0", id: "x" }]],
  ])("verifyWebhook verifies the signature of %s, and names the package that reads it", async (_form, value) => {
    const body = JSON.stringify(value);
    const headers = sign(body, Buffer.from("k"), "x");
    expect(await verifySignature(body, headers, { secret: "k", now })).toBe("x");
    await expect(verifyWebhook(body, headers, { secret: "k", now })).rejects.toThrow("package cloudevents");
  });

  it("verifyWebhook verifies Ed25519 with the public key, and refuses an HMAC made with that key", async () => {
    const { privateKey, publicKey } = generateKeyPairSync("ed25519");
    const raw = publicKey.export({ format: "der", type: "spki" }).subarray(-32);
    const secret = `whpk_${raw.toString("base64")}`;
    const head = `${event.eventId}.1614265330.`;
    const signature = signWith(null, Buffer.from(head + rest), privateKey).toString("base64");
    const headers = { ...sign(rest, raw), "webhook-signature": `v1a,${signature}` };
    expect(await verifyWebhook(rest, headers, { secret, now })).toMatchObject({ kind: "event" });
    // Anybody who knows the public key can make an HMAC with it.
    for (const key of [raw, Buffer.from(secret)]) {
      await expect(verifyWebhook(rest, sign(rest, key), { secret, now })).rejects.toThrow("does not match");
    }
    await expect(verifyWebhook(`${rest} `, headers, { secret, now })).rejects.toThrow("does not match");
  });

  it.each([
    ["whsk_AAAA", "public key whpk_"],
    ["whpk_AAAA", "32 bytes"],
    ["", "empty"],
  ])("verifyWebhook throws for the unusable secret %j", async (secret, reason) => {
    await expect(verifyWebhook(rest, sign(rest, Buffer.from("k")), { secret, now })).rejects.toThrow(reason);
  });

  const good = sign(rest, Buffer.from("k"));
  it.each([
    ["another body", `${rest} `, good, now, "does not match"],
    ["another id", rest, { ...good, "webhook-id": "x" }, now, "does not match"],
    ["another secret", rest, sign(rest, Buffer.from("other")), now, "does not match"],
    [
      "a signature of another version",
      rest,
      { ...good, "webhook-signature": good["webhook-signature"]?.replace("v1", "v1a") },
      now,
      "does not match",
    ],
    ["an empty signature", rest, { ...good, "webhook-signature": "v1," }, now, "does not match"],
    ["no signature", rest, { ...good, "webhook-signature": undefined }, now, "webhook-signature is missing"],
    ["an old callback", rest, good, now + 301_000, "clock"],
    ["a callback from the future", rest, good, now - 301_000, "clock"],
    ["a timestamp that is not an integer", rest, { ...good, "webhook-timestamp": "1e9" }, now, "not a number"],
  ])("verifyWebhook refuses %s", async (...row) => {
    const [, body, headers, at, reason] = row;
    const verified = verifyWebhook(body, headers, { secret: "k", now: at });
    await expect(verified).rejects.toThrow(WebhookRefused);
    await expect(verified).rejects.toThrow(reason);
  });
});
