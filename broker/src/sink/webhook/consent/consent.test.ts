import { isBrokerError } from "@stele/wire";
import { describe, expect, test } from "vitest";
import { createSystemClock } from "../../../lib/system/clock.ts";
import type { AttemptOutcome, Notification, Sink } from "../../../ports/sink.ts";
import { noMetrics } from "../../../ports/metrics.ts";
import { signMessage } from "../../../lib/webhook-signature.ts";
import { notificationTo } from "../testing/notification.ts";
import { type Answerer, type Receiver, startReceiver } from "../testing/receiver.ts";
import { makeSink, unaborted } from "../testing/sink.ts";

const origin = "broker.example";
const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const accepted: AttemptOutcome = { status: "accepted" };

/** A sink that asks for consent, with a clock that the test can advance. */
function makeAsking(mode: "off" | "try" | "require", trusted: readonly string[] = []) {
  const system = createSystemClock();
  const time = { aheadMs: 0 };
  const replies: string[] = [];
  const sink = makeSink({
    consent: { mode, trusted, origin },
    clock: { ...system, monotonic: () => system.monotonic() + time.aheadMs },
    metrics: { ...noMetrics, consentAsked: (reply) => void replies.push(reply) },
  });
  return { sink, time, replies };
}

/** Answers OPTIONS with one status and headers, and POST with another. */
function answering(options: number, headers: Readonly<Record<string, string>> = {}, post = 200): Answerer {
  return (response, { method }) => {
    if (method === "OPTIONS") response.writeHead(options, headers).end();
    else response.writeHead(post).end();
  };
}

const agreeing = answering(200, { "webhook-allowed-origin": origin });
const methodsOf = ({ requests }: Receiver): readonly (string | undefined)[] => requests.map(({ method }) => method);
const attempt = (sink: Sink, url: string, changes: Partial<Notification["subscription"]> = {}) =>
  sink.attempt(notificationTo({ url, ...changes }), unaborted);

async function isRefused(sink: Sink, url: string): Promise<boolean> {
  try {
    await sink.checkTarget(notificationTo({ url }).subscription);
    return false;
  } catch (error) {
    if (isBrokerError(error, "receiverNotAgreed")) return true;
    throw error;
  }
}

describe.each(["try", "require"] as const)("in mode `%s`, a receiver", (mode) => {
  test("that agrees by the handshake is asked once, and the request names the broker", async () => {
    await using receiver = await startReceiver(agreeing);
    const { sink, replies } = makeAsking(mode);
    expect(await isRefused(sink, receiver.url)).toBe(false);
    expect(await attempt(sink, receiver.url)).toEqual(accepted);
    expect(await attempt(sink, receiver.url)).toEqual(accepted);
    expect(methodsOf(receiver)).toEqual(["OPTIONS", "POST", "POST"]);
    expect(receiver.requests[0]).toMatchObject({
      path: "/hook",
      body: "",
      headers: { "webhook-request-origin": origin },
    });
    expect(replies).toEqual(["agreed"]);
  });

  test.each([
    ["answers 403", answering(403)],
    ["allows another broker", answering(200, { "webhook-allowed-origin": "other.example" })],
  ])("that %s is not called, and not asked again for a minute", async (_, answerer) => {
    await using receiver = await startReceiver(answerer);
    const { sink, time } = makeAsking(mode);
    expect(await isRefused(sink, receiver.url)).toBe(true);
    expect(await isRefused(sink, receiver.url)).toBe(true);
    expect(await attempt(sink, receiver.url)).toMatchObject({
      status: "failed",
      reason: expect.stringMatching(/^the receiver did not agree to be called: its? /),
      retryAfterMs: expect.toSatisfy((delayMs: number) => delayMs > 50_000 && delayMs <= 60_000),
    });
    expect(methodsOf(receiver)).toEqual(["OPTIONS"]);
    time.aheadMs = 60_000;
    await attempt(sink, receiver.url);
    expect(methodsOf(receiver)).toEqual(["OPTIONS", "OPTIONS"]);
  });

  test("is asked again after a day", async () => {
    await using receiver = await startReceiver(agreeing);
    const { sink, time } = makeAsking(mode);
    await attempt(sink, receiver.url);
    time.aheadMs = 24 * 3_600_000;
    await attempt(sink, receiver.url);
    expect(methodsOf(receiver)).toEqual(["OPTIONS", "POST", "OPTIONS", "POST"]);
  });

  test("is asked once for each url, even by concurrent attempts", async () => {
    await using receiver = await startReceiver(agreeing);
    const { sink } = makeAsking(mode);
    const long = "a".repeat(1000);
    const urls = ["", "", "?a", "?a", "", `?${long}1`, `?${long}2`, `?${long}1`].map(
      (query) => `${receiver.url}${query}`,
    );
    expect(await Promise.all(urls.map((url) => attempt(sink, url)))).toEqual(urls.map(() => accepted));
    expect(methodsOf(receiver).filter((method) => method === "OPTIONS")).toHaveLength(4);
  });

  test("that is trusted is not asked", async () => {
    await using receiver = await startReceiver(answering(403));
    const { sink } = makeAsking(mode, ["127.0.0.1"]);
    expect(await isRefused(sink, receiver.url)).toBe(false);
    expect(await attempt(sink, receiver.url)).toEqual(accepted);
    expect(methodsOf(receiver)).toEqual(["POST"]);
  });

  test("that cannot be reached does not block its subscription", async () => {
    const receiver = await startReceiver(agreeing);
    await receiver[Symbol.asyncDispose]();
    const { sink, replies } = makeAsking(mode);
    expect(await isRefused(sink, receiver.url)).toBe(false);
    expect(await attempt(sink, receiver.url)).toMatchObject({ status: "failed" });
    expect(replies).toEqual(["unreachable"]);
  });

  test("that allows a rate is not called faster", async () => {
    await using receiver = await startReceiver(
      answering(200, { "webhook-allowed-origin": "*", "webhook-allowed-rate": "600" }),
    );
    const { sink } = makeAsking(mode);
    await sink.checkTarget(notificationTo({ url: receiver.url }).subscription);
    const startedAt = performance.now();
    await Promise.all(Array.from({ length: 5 }, () => attempt(sink, receiver.url)));
    expect(performance.now() - startedAt).toBeGreaterThan(390);
  });
});

describe("a receiver that does not support the handshake", () => {
  test("is called in mode `try`, and gets no ping", async () => {
    await using receiver = await startReceiver(answering(405));
    const { sink, replies } = makeAsking("try");
    expect(await isRefused(sink, receiver.url)).toBe(false);
    expect(await attempt(sink, receiver.url)).toEqual(accepted);
    expect(methodsOf(receiver)).toEqual(["OPTIONS", "POST"]);
    expect(replies).toEqual(["unknown"]);
  });

  test("is called in mode `try`, even if it answers OPTIONS with 500", async () => {
    await using receiver = await startReceiver(answering(500));
    const { sink } = makeAsking("try");
    expect(await attempt(sink, receiver.url)).toEqual(accepted);
  });

  test("agrees in mode `require` if it accepts a signed ping, which is not an event", async () => {
    await using receiver = await startReceiver(answering(405));
    const { sink } = makeAsking("require");
    await sink.checkTarget(notificationTo({ url: receiver.url, secret }).subscription);
    expect(await attempt(sink, receiver.url, { secret })).toEqual(accepted);
    expect(methodsOf(receiver)).toEqual(["OPTIONS", "POST", "POST"]);
    const [, ping] = receiver.requests;
    if (ping === undefined) throw new Error("there is no ping");
    const { headers, body } = ping;
    const id = String(headers["webhook-id"]);
    expect(id).toMatch(/^ping-[0-9a-f-]{36}$/);
    expect(JSON.parse(body)).toEqual({
      subscriptionId: "6f5902ac-237e-4c1d-9bf6-3bcbb5f9a9c1",
      ping: id,
      event: { topic: "", content: "", extensions: {}, eventId: "" },
    });
    const timestampSeconds = Number(headers["webhook-timestamp"]);
    const signature = signMessage(secret, { id, timestampSeconds, body: Buffer.from(body) });
    expect(headers["webhook-signature"]).toBe(signature);
  });

  test("is pinged over JSON-RPC by the method `ping`, and agrees with the status 200", async () => {
    await using receiver = await startReceiver(answering(404));
    const { sink } = makeAsking("require");
    await sink.checkTarget(notificationTo({ url: receiver.url, format: "JsonRPC" }).subscription);
    const ping: unknown = JSON.parse(receiver.requests[1]?.body ?? "");
    expect(ping).toMatchObject({ jsonrpc: "2.0", method: "ping", id: receiver.requests[1]?.headers["webhook-id"] });
  });

  test("is not called in mode `require` if it refuses the ping", async () => {
    await using receiver = await startReceiver(answering(200, {}, 404));
    const { sink } = makeAsking("require");
    expect(await isRefused(sink, receiver.url)).toBe(true);
    expect(await attempt(sink, receiver.url)).toMatchObject({ status: "failed" });
    expect(methodsOf(receiver)).toEqual(["OPTIONS", "POST"]);
  });
});

test("in mode `require`, a receiver that refuses the signature or form of another subscriber's ping still agrees to its own subscriber", async () => {
  const isSigned = ({ headers, body }: Receiver["requests"][number]): boolean => {
    const [id, timestampSeconds] = [String(headers["webhook-id"]), Number(headers["webhook-timestamp"])];
    return headers["webhook-signature"] === signMessage(secret, { id, timestampSeconds, body: Buffer.from(body) });
  };
  await using receiver = await startReceiver((response, request) => {
    const isWanted = isSigned(request) && request.body.startsWith('{"subscriptionId"');
    response.writeHead(request.method === "OPTIONS" ? 405 : isWanted ? 200 : 401).end();
  });
  const { url } = receiver;
  const { sink } = makeAsking("require");
  expect(await isRefused(sink, url)).toBe(true);
  const strange = sink.checkTarget(notificationTo({ url, secret, format: "JsonRPC" }).subscription);
  await expect(strange).rejects.toMatchObject({ code: 100_506 });
  expect(await attempt(sink, url, { secret })).toEqual(accepted);
  // A known refusal is not asked again.
  const asked = receiver.requests.length;
  expect(await attempt(sink, url, { secret })).toEqual(accepted);
  expect(receiver.requests).toHaveLength(asked + 1);
});

test("in mode `require`, two subscribers that ask one receiver at once get an answer each", async () => {
  await using receiver = await startReceiver((response, { method, headers, body }) => {
    const [id, timestampSeconds] = [String(headers["webhook-id"]), Number(headers["webhook-timestamp"])];
    const isOwn =
      headers["webhook-signature"] === signMessage(secret, { id, timestampSeconds, body: Buffer.from(body) });
    response.writeHead(method === "OPTIONS" ? 405 : isOwn ? 200 : 401).end();
  });
  const { sink } = makeAsking("require");
  const subscribers = [{}, { secret }];
  const outcomes = await Promise.all(subscribers.map((changes) => attempt(sink, receiver.url, changes)));
  expect(outcomes.map(({ status }) => status)).toEqual(["failed", "accepted"]);
});

test("in mode `require`, a receiver that answered OPTIONS with 503 is asked again after 1 s, and gets no event before it agrees", async () => {
  const answers = [answering(503), answering(503), agreeing, agreeing];
  await using receiver = await startReceiver((response, request) => answers.shift()?.(response, request));
  const { sink, time } = makeAsking("require");
  expect(await isRefused(sink, receiver.url)).toBe(false);
  for (const aheadMs of [0, 1000]) {
    time.aheadMs = aheadMs;
    const outcome = await attempt(sink, receiver.url);
    expect(outcome).toEqual({
      status: "failed",
      reason: "the receiver did not agree to be called: it answered OPTIONS with 503",
    });
  }
  time.aheadMs = 2000;
  expect(await attempt(sink, receiver.url)).toEqual(accepted);
  expect(methodsOf(receiver)).toEqual(["OPTIONS", "OPTIONS", "OPTIONS", "POST"]);
});

test("in mode `off`, no receiver is asked", async () => {
  await using receiver = await startReceiver(answering(403));
  const { sink } = makeAsking("off");
  expect(await isRefused(sink, receiver.url)).toBe(false);
  expect(await attempt(sink, receiver.url)).toEqual(accepted);
  expect(methodsOf(receiver)).toEqual(["POST"]);
});
