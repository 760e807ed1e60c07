import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { createDeferred } from "../../lib/deferred.ts";
import type { AttemptOutcome } from "../../ports/sink.ts";
import { signMessage } from "../../lib/webhook-signature.ts";
import { ManualClock } from "./testing/manual-clock.ts";
import { notificationTo } from "./testing/notification.ts";
import { startReceiver, startTcpReceiver } from "./testing/receiver.ts";
import { attemptAt, makeSink, unaborted } from "./testing/sink.ts";

const id = "2cf24dba-59-1124";
const timeoutMs = 10_000;
const notResponse = refused("the body is not a JSON-RPC response");
const closed = "the connection was closed before the answer was whole";
const cancelled = { status: "failed", reason: "the broker cancelled the attempt" };

/** Answers the first request of a connection, and calls `onNext` when the next one comes. */
function answerOnce(socket: Socket, onNext: () => void): void {
  socket.once("data", () => {
    socket.write("HTTP/1.1 204 No Content\r\n\r\n");
    socket.once("data", onNext);
  });
}

describe("a request", () => {
  test("is a POST of JSON with the Standard Webhooks headers", async () => {
    await using receiver = await startReceiver((response) => response.end());
    const outcome = await attemptAt(`${receiver.url}?a=b%20c`);
    expect(outcome).toEqual({ status: "accepted" });
    const [request] = receiver.requests;
    expect(request).toMatchObject({
      method: "POST",
      path: "/hook?a=b%20c",
      headers: {
        "content-type": "application/json",
        "user-agent": "stele/1.2.3",
        "webhook-id": "2cf24dba-59-1124",
        "webhook-timestamp": expect.stringMatching(/^\d{10}$/),
      },
    });
    expect(request?.headers["webhook-signature"]).toBeUndefined();
    expect(JSON.parse(request?.body ?? "")).toMatchObject({ event: { eventId: "2cf24dba-59-1124" } });
  });

  test("is signed if the subscription has a secret", async () => {
    await using receiver = await startReceiver((response) => response.end());
    await attemptAt(receiver.url, { secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" });
    const [request] = receiver.requests;
    const expected = signMessage("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", {
      id: "2cf24dba-59-1124",
      timestampSeconds: Number(request?.headers["webhook-timestamp"]),
      body: Buffer.from(request?.body ?? ""),
    });
    expect(request?.headers["webhook-signature"]).toBe(expected);
  });

  test("keeps its connection for the next request", async () => {
    await using receiver = await startReceiver((response) => response.end("thanks"));
    const sink = makeSink();
    const notification = notificationTo({ url: receiver.url });
    for (let round = 0; round < 5; round += 1) await sink.attempt(notification, unaborted);
    expect(receiver.requests).toHaveLength(5);
    // A second one, because undici returns an answered connection one turn of the event loop later.
    expect(receiver.connectionCount()).toBeLessThanOrEqual(2);
  });

  test("is sent again at once, on a new connection, if the receiver closes the connection of an earlier request without an answer", async () => {
    await using receiver = await startTcpReceiver((socket) => answerOnce(socket, () => socket.end()));
    const sink = makeSink();
    const notification = notificationTo({ url: receiver.url });
    for (let round = 0; round < 2; round += 1)
      expect(await sink.attempt(notification, unaborted)).toEqual({ status: "accepted" });
    expect(receiver.connectionCount()).toBe(2);
  });

  test("is sent again within the deadline of its attempt", async () => {
    const clock = new VirtualClock();
    let connections = 0;
    await using receiver = await startTcpReceiver((socket) => {
      connections += 1;
      if (connections === 1) answerOnce(socket, () => void clock.advance(6_000).then(() => socket.end()));
      else socket.once("data", () => void clock.advance(4_000));
    });
    const sink = makeSink({ clock, timeoutMs });
    const notification = notificationTo({ url: receiver.url });
    await sink.attempt(notification, unaborted);
    expect(await sink.attempt(notification, unaborted)).toEqual({
      status: "failed",
      reason: "the deadline of 10000 ms passed",
    });
    expect(receiver.connectionCount()).toBe(2);
  });

  test.each(["H", "HTTP/1.1 102 Processing\r\n\r\n", "HTTP/1.1 500 Intern"])(
    "is not sent again if the receiver sends %j and then closes the connection",
    async (text) => {
      await using receiver = await startTcpReceiver((socket) => answerOnce(socket, () => socket.end(text)));
      const sink = makeSink();
      const notification = notificationTo({ url: receiver.url });
      await sink.attempt(notification, unaborted);
      expect((await sink.attempt(notification, unaborted)).status).toBe("failed");
      expect(receiver.connectionCount()).toBe(1);
    },
  );

  test("counts towards the rate of its receiver each time it is sent", async () => {
    const clock = new VirtualClock();
    await using receiver = await startTcpReceiver((socket) => answerOnce(socket, () => socket.end()));
    const waits: number[] = [];
    const after = clock.after.bind(clock);
    clock.after = (delayMs, action) => {
      if (delayMs !== timeoutMs) waits.push(delayMs);
      return after(delayMs, action);
    };
    const sink = makeSink({ clock, timeoutMs, bytesPerSecondMax: 1 });
    const notification = notificationTo({ url: receiver.url });
    await sink.attempt(notification, unaborted);
    const second = sink.attempt(notification, unaborted);
    await clock.advance(waits[0] ?? 0);
    await second;
    void sink.attempt(notification, unaborted);
    // The rate allows one second in advance.
    expect(waits).toEqual([waits[0], 2 * ((waits[0] ?? 0) + 1_000)]);
    expect(receiver.connectionCount()).toBe(2);
  });

  test("is not sent again on a new connection once its worker stops", async () => {
    const stopping = new AbortController();
    await using receiver = await startTcpReceiver((socket) =>
      answerOnce(socket, () => {
        stopping.abort();
        socket.end();
      }),
    );
    const sink = makeSink();
    const notification = notificationTo({ url: receiver.url });
    await sink.attempt(notification, unaborted);
    const outcome = await sink.attempt(notification, unaborted, { stopping: stopping.signal });
    expect(outcome).toEqual({ status: "failed", reason: closed });
    expect(receiver.connectionCount()).toBe(1);
  });

  test("is not sent again if the receiver closes a new connection without an answer", async () => {
    await using receiver = await startTcpReceiver((socket) => void socket.once("data", () => socket.end()));
    expect(await attemptAt(receiver.url)).toEqual({ status: "failed", reason: closed });
    expect(receiver.connectionCount()).toBe(1);
  });

  test("waits for a connection when its receiver has reached its limit", async () => {
    await using receiver = await startReceiver((response) => response.end());
    const sink = makeSink({ connectionsMax: 3 });
    const notification = notificationTo({ url: receiver.url });
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => sink.attempt(notification, unaborted)));
    expect(outcomes.every(({ status }) => status === "accepted")).toBe(true);
    expect(receiver.connectionCount()).toBeLessThanOrEqual(3);
  });
});

describe("an answer", () => {
  const closing: Readonly<Record<string, string>> = { connection: "close" };

  test.each<[number, Record<string, string>, AttemptOutcome]>([
    [200, {}, { status: "accepted" }],
    [204, {}, { status: "accepted" }],
    [299, {}, { status: "accepted" }],
    [301, { location: "/elsewhere" }, { status: "failed", reason: "answered 301: redirects are not followed" }],
    [307, { location: "/elsewhere" }, { status: "failed", reason: "answered 307: redirects are not followed" }],
    [400, {}, { status: "failed", reason: "answered 400" }],
    [410, {}, { status: "gone", reason: "answered 410" }],
    [429, { "retry-after": "7" }, { status: "failed", reason: "answered 429", retryAfterMs: 7000 }],
    [500, closing, { status: "failed", reason: "answered 500" }],
    [503, { "retry-after": "soon" }, { status: "failed", reason: "answered 503" }],
  ])("with status %s and headers %j decides the outcome", async (status, headers, outcome) => {
    await using receiver = await startReceiver((response) => response.writeHead(status, headers).end());
    expect(await attemptAt(receiver.url)).toEqual(outcome);
    expect(receiver.requests).toHaveLength(1);
  });

  test("with two Retry-After headers delays the retry by the first", async () => {
    const headers = ["retry-after", "7", "retry-after", "9"];
    await using receiver = await startReceiver((response) => response.writeHead(429, headers).end());
    expect(await attemptAt(receiver.url)).toEqual({ status: "failed", reason: "answered 429", retryAfterMs: 7000 });
  });

  test("after informational answers is the one that counts", async () => {
    await using receiver = await startReceiver((response) => {
      response.writeProcessing();
      response.writeHead(202).end();
    });
    expect(await attemptAt(receiver.url)).toEqual({ status: "accepted" });
  });
});

describe("a JSON-RPC answer", () => {
  test.each<[string, AttemptOutcome]>([
    [`{"jsonrpc":"2.0","id":"${id}","result":"true"}`, { status: "accepted" }],
    [`{"jsonrpc":"2.0","id":"${id}","result":null}`, { status: "accepted" }],
    [`{"jsonrpc":"2.0","id":"${id}","result":1,"error":null}`, { status: "accepted" }],
    [`{"jsonrpc":"2.0","result":1}`, { status: "accepted" }],
    [`\ufeff{"jsonrpc":"2.0","id":"${id}","result":1}`, { status: "accepted" }],
    [`{"jsonrpc":"2.0","id":"other","result":1}`, refused("the JSON-RPC response is to another request")],
    [`{"jsonrpc":"2.0","id":null,"result":1}`, { status: "accepted" }],
    [`{"jsonrpc":"2.0","id":7,"result":1}`, refused("the JSON-RPC response is to another request")],
    [
      `{"jsonrpc":"2.0","id":"${id}","error":{"code":-32000,"message":"hunter2"}}`,
      refused("with a JSON-RPC error -32000"),
    ],
    [`{"jsonrpc":"2.0","id":null,"error":{"code":"x"}}`, refused("with a JSON-RPC error")],
    [`{"error":"broken"}`, refused("with a JSON-RPC error")],
    [`[{"jsonrpc":"2.0","id":"${id}","result":1}]`, notResponse],
    ["", notResponse],
    ["OK", notResponse],
    ["null", notResponse],
    ["true", notResponse],
    [" ".repeat(70_000), refused("the JSON-RPC response is too long")],
  ])("decides the outcome: %.60s", async (body, outcome) => {
    await using receiver = await startReceiver((response) => response.end(body));
    expect(await attemptAt(receiver.url, { format: "JsonRPC" })).toEqual(outcome);
  });

  test.each([
    [204, { status: "accepted" }],
    [410, { status: "gone", reason: "answered 410" }],
    [500, { status: "failed", reason: "answered 500" }],
  ])("with status %s is judged by its status", async (status, outcome) => {
    await using receiver = await startReceiver((response) =>
      response.writeHead(status).end(`{"id":"${id}","result":1}`),
    );
    expect(await attemptAt(receiver.url, { format: "JsonRPC" })).toEqual(outcome);
  });
});

describe("abort and stop", () => {
  test("an aborted attempt ends at once", async () => {
    const controller = new AbortController();
    await using receiver = await startReceiver(() => controller.abort());
    const sink = makeSink();
    const outcome = await sink.attempt(notificationTo({ url: receiver.url }), controller.signal);
    expect(outcome).toEqual(cancelled);
  });

  test("an attempt with an aborted signal, or after stop, sends nothing", async () => {
    await using receiver = await startReceiver((response) => response.end());
    const sink = makeSink();
    const notification = notificationTo({ url: receiver.url });
    expect(await sink.attempt(notification, AbortSignal.abort())).toEqual(cancelled);
    await sink.stop(0);
    expect(await sink.attempt(notification, unaborted)).toEqual({
      status: "failed",
      reason: "the broker is stopping",
    });
    expect(receiver.requests).toEqual([]);
  });

  test("stop waits for attempts in progress", async () => {
    const sink = makeSink();
    const stops: Promise<void>[] = [];
    await using receiver = await startReceiver((response) => {
      stops.push(sink.stop(60_000));
      response.end();
    });
    expect(await sink.attempt(notificationTo({ url: receiver.url }), unaborted)).toEqual({ status: "accepted" });
    expect(stops).toHaveLength(1);
    await stops[0];
  });

  test("stop cancels an attempt that is in progress when its grace has passed", async () => {
    const reached = createDeferred<void>();
    await using receiver = await startReceiver(() => reached.resolve());
    const sink = makeSink();
    const outcome = sink.attempt(notificationTo({ url: receiver.url }), unaborted);
    await reached.promise;
    await sink.stop(10);
    expect(await outcome).toEqual({ status: "failed", reason: "the broker is stopping" });
  });

  test("an attempt that waited for a connection still has its full timeout", async () => {
    const clock = new ManualClock();
    await using receiver = await startReceiver((response, { path }) => {
      if (path === "/release") response.end();
      else clock.expire();
    });
    const sink = makeSink({ connectionsMax: 1, clock });
    const first = sink.attempt(notificationTo({ url: receiver.url }), unaborted);
    const second = sink.attempt(notificationTo({ url: receiver.url }), unaborted);
    expect(await Promise.all([first, second])).toMatchObject([{ status: "failed" }, { status: "failed" }]);
    const release = notificationTo({ url: receiver.url.replace("/hook", "/release") });
    expect(await sink.attempt(release, unaborted)).toEqual({ status: "accepted" });
    expect(receiver.requests.map(({ path }) => path)).toEqual(["/hook", "/hook", "/release"]);
  });
});

function refused(fault: string): AttemptOutcome {
  return { status: "failed", reason: `answered 200, but ${fault}` };
}
