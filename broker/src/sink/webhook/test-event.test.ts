import { describe, expect, test } from "vitest";
import { rotateSecret } from "../../domain/signing-secret.ts";
import { signMessage } from "../../lib/webhook-signature.ts";
import { notificationTo } from "./testing/notification.ts";
import { startReceiver } from "./testing/receiver.ts";
import { attemptAt, makeSink, unaborted } from "./testing/sink.ts";

describe("a test event", () => {
  test("is a signed ping, and the result contains the receiver's answer", async () => {
    await using receiver = await startReceiver((response) => response.writeHead(500).end("not today"));
    const target = notificationTo({ url: receiver.url, secret: "secret" }).subscription;
    const { outcome, answer } = await makeSink().test(target, unaborted);
    expect(outcome).toEqual({ status: "failed", reason: "answered 500" });
    expect([answer?.status, answer?.body.toString()]).toEqual([500, "not today"]);
    const [request] = receiver.requests;
    const id = String(request?.headers["webhook-id"]);
    expect(JSON.parse(request?.body ?? "")).toMatchObject({ ping: id, event: { eventId: "" } });
    const timestampSeconds = Number(request?.headers["webhook-timestamp"]);
    const body = Buffer.from(request?.body ?? "");
    expect(request?.headers["webhook-signature"]).toBe(signMessage("secret", { id, timestampSeconds, body }));
  });

  test("is accepted with status 200, even if a JsonRPC receiver answers that it does not know the method", async () => {
    await using receiver = await startReceiver((response) => response.end('{"error":{"code":-32601}}'));
    const target = notificationTo({ url: receiver.url, format: "JsonRPC" }).subscription;
    expect((await makeSink().test(target, unaborted)).outcome).toEqual({ status: "accepted" });
    expect(JSON.parse(receiver.requests[0]?.body ?? "")).toMatchObject({ method: "ping" });
  });

  test.each<[string, string, string]>([
    ["a web page", "<html>welcome</html>", "answered 200, but the body is not a JSON-RPC response"],
    ["an endless body", "x".repeat(70_000), "answered 200, but the JSON-RPC response is too long"],
  ])("fails if a JsonRPC receiver answers with %s, as events would", async (_name, body, reason) => {
    await using receiver = await startReceiver((response) => response.end(body));
    const target = notificationTo({ url: receiver.url, format: "JsonRPC" }).subscription;
    expect((await makeSink().test(target, unaborted)).outcome).toEqual({ status: "failed", reason });
  });

  test("fails with the reason if the broker cannot call the url", async () => {
    const { outcome, answer } = await makeSink().test(notificationTo({ url: "ftp://x/" }).subscription, unaborted);
    expect([outcome.status, answer]).toEqual(["failed", undefined]);
    expect(outcome).toHaveProperty("reason", expect.stringContaining("the url cannot be called"));
  });

  test("is not sent to a receiver that refuses the broker", async () => {
    await using receiver = await startReceiver((response) => response.writeHead(403).end());
    const sink = makeSink({ consent: { mode: "try", trusted: [], origin: "broker.example" } });
    const { outcome } = await sink.test(notificationTo({ url: receiver.url }).subscription, unaborted);
    expect(outcome).toHaveProperty("reason", expect.stringContaining("did not agree to be called"));
    expect(receiver.requests.map(({ method }) => method)).toEqual(["OPTIONS"]);
  });

  test("is not sent if its caller has lost the right to it while the receiver was asked for its consent", async () => {
    let mayStart = true;
    await using receiver = await startReceiver((response) => {
      mayStart = false;
      response.writeHead(405).end();
    });
    const sink = makeSink({ consent: { mode: "try", trusted: [], origin: "broker.example" } });
    const target = notificationTo({ url: receiver.url }).subscription;
    expect((await sink.test(target, unaborted, () => mayStart)).answer).toBeUndefined();
    expect(receiver.requests.map(({ method }) => method)).toEqual(["OPTIONS"]);
  });

  test("ends with its signal while the receiver is asked for its consent", async () => {
    const ending = new AbortController();
    await using receiver = await startReceiver(() => ending.abort());
    const sink = makeSink({ consent: { mode: "require", trusted: [], origin: "broker.example" } });
    const { outcome } = await sink.test(notificationTo({ url: receiver.url }).subscription, ending.signal);
    expect(outcome).toEqual({ status: "failed", reason: "the broker is stopping" });
    expect(receiver.requests.map(({ method }) => method)).toEqual(["OPTIONS"]);
  });
});

test("during a rotation, a notification is signed with both secrets", async () => {
  await using receiver = await startReceiver((response) => response.end());
  const secret = rotateSecret("old", "new", { until: Date.now() + 3_600_000 });
  await attemptAt(receiver.url, { secret });
  const [request] = receiver.requests;
  const message = {
    id: String(request?.headers["webhook-id"]),
    timestampSeconds: Number(request?.headers["webhook-timestamp"]),
    body: Buffer.from(request?.body ?? ""),
  };
  const signatures = ["new", "old"].map((one) => signMessage(one, message)).join(" ");
  expect(request?.headers["webhook-signature"]).toBe(signatures);
});
