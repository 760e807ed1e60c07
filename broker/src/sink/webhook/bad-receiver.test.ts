import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:tls";
import { describe, expect, test } from "vitest";
import { createDeferred } from "../../lib/deferred.ts";
import type { AttemptOutcome } from "../../ports/sink.ts";
import { ManualClock } from "./testing/manual-clock.ts";
import { notificationTo } from "./testing/notification.ts";
import { startReceiver, startTcpReceiver } from "./testing/receiver.ts";
import { attemptAt, makeSink, unaborted } from "./testing/sink.ts";

describe("a bad receiver", () => {
  const deadline = "the deadline of 10000 ms passed";

  test("that never answers fails at the deadline", async () => {
    const clock = new ManualClock();
    await using receiver = await startReceiver(() => clock.expire());
    expect(await attemptAt(receiver.url, { clock })).toEqual({ status: "failed", reason: deadline });
  });

  test("that accepts the connection and sends nothing fails at the deadline", async () => {
    const clock = new ManualClock();
    await using receiver = await startTcpReceiver((socket) => void socket.on("data", () => clock.expire()));
    expect(await attemptAt(receiver.url, { clock })).toEqual({ status: "failed", reason: deadline });
  });

  test("that accepts the connection and begins no TLS fails at the deadline, and loses its connection", async () => {
    const clock = new ManualClock();
    const closed = createDeferred<void>();
    await using receiver = await startTcpReceiver((socket) => {
      socket.on("data", () => clock.expire());
      socket.on("close", () => closed.resolve());
    });
    const url = receiver.url.replace("http:", "https:");
    const outcome = await attemptAt(url, { clock, timeoutMs: 300_000 });
    expect(outcome).toEqual({ status: "failed", reason: "the deadline of 300000 ms passed" });
    await closed.promise;
  });

  test("that never answers fails after the configured time on a real clock", async () => {
    await using receiver = await startReceiver(() => {});
    const outcome = await attemptAt(receiver.url, { timeoutMs: 50 });
    expect(outcome).toEqual({ status: "failed", reason: "the deadline of 50 ms passed" });
  });

  test.each<[string, number, AttemptOutcome]>([
    ["2xx fails at the deadline", 200, { status: "failed", reason: `answered 200, but ${deadline}` }],
    ["410 still counts as gone", 410, { status: "gone", reason: "answered 410" }],
    ["500 still counts as failed", 500, { status: "failed", reason: "answered 500" }],
  ])("that hangs in the body of a %s", async (_name, status, outcome) => {
    const clock = new ManualClock();
    clock.expireAfterHead();
    await using receiver = await startReceiver((response) => response.writeHead(status).write("…"));
    expect(await attemptAt(receiver.url, { clock })).toEqual(outcome);
  });

  test("that answers 2xx with an endless body has accepted, and loses its connection", async () => {
    const responses: ServerResponse[] = [];
    await using receiver = await startReceiver((response) => {
      responses.push(response);
      writeForEver(response);
    });
    expect(await attemptAt(receiver.url)).toEqual({ status: "accepted" });
    const [response] = responses;
    if (response !== undefined && !response.closed) await once(response, "close");
    expect(responses).toHaveLength(1);
  });

  test.each<[string, string, AttemptOutcome]>([
    [
      "informational answers",
      "HTTP/1.1 103 X\r\n\r\n".repeat(1025),
      { status: "failed", reason: "the answer came in too many parts" },
    ],
    [
      "extensions of a chunk",
      `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;${"x".repeat(300_000)}`,
      { status: "failed", reason: "answered 200, but the answer is too long" },
    ],
    [
      "pieces of a body",
      `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${"1\r\nx\r\n".repeat(1025)}`,
      { status: "accepted" },
    ],
  ])("that sends too many %s loses its connection", async (_name, text, outcome) => {
    const closed: Promise<unknown>[] = [];
    await using receiver = await startTcpReceiver((socket) => {
      closed.push(new Promise((resolve) => socket.once("close", resolve)));
      socket.once("data", () => socket.write(text));
    });
    expect(await attemptAt(receiver.url)).toEqual(outcome);
    await Promise.all(closed);
    expect(closed).toHaveLength(1);
  });

  test.each(["content-length: 2\r\n\r\n", "content-length: 2\r\n\r\nok"])(
    "that answers 204 has accepted, although it names a length: %j",
    async (rest) => {
      await using receiver = await startTcpReceiver((socket) => {
        socket.once("data", () => socket.write(`HTTP/1.1 204 No Content\r\n${rest}`));
      });
      expect(await attemptAt(receiver.url, { format: "JsonRPC" })).toEqual({ status: "accepted" });
    },
  );

  test("that answers in 1000 pieces is read to the end", async () => {
    const pieces = [`{"jsonrpc":"2.0","result":"`, ...Array.from({ length: 998 }, () => "y"), `"}`];
    const body = pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`).join("");
    await using receiver = await startTcpReceiver((socket) => {
      socket.once("data", () => socket.write(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${body}0\r\n\r\n`));
    });
    expect(await attemptAt(receiver.url, { format: "JsonRPC" })).toEqual({ status: "accepted" });
  });

  test("that refuses connections fails with that reason", async () => {
    const outcome = await attemptAt("http://127.0.0.1:65535/"); // Nobody listens on that port.
    expect(outcome).toEqual({ status: "failed", reason: "the connection was refused" });
  });

  test.each<[string, string, RegExp]>([
    ["garbage", "hello, who is there?\r\n\r\n", /^the answer is not HTTP$/],
    ["an invalid status", "HTTP/1.1 99999 X\r\n\r\n", /^the answer is not HTTP$/],
    ["the status 099", "HTTP/1.1 099 X\r\n\r\n", /^the answer is not HTTP$/],
    ["the status 000 with a body", "HTTP/1.1 000 X\r\ncontent-length: 2\r\n\r\nab", /^the answer is not HTTP$/],
    ["the status 1000", "HTTP/1.1 1000 X\r\n\r\n", /^the answer is not HTTP$/],
    ["a status of two digits", "HTTP/1.1 99 X\r\n\r\n", /^the answer is not HTTP$/],
    ["a negative status", "HTTP/1.1 -20 X\r\n\r\n", /^the answer is not HTTP$/],
    ["no status", "HTTP/1.1\r\n\r\n", /^the answer is not HTTP$/],
    ["headers without a status line", "content-length: 2\r\n\r\nab", /^the answer is not HTTP$/],
    ["a body alone, as HTTP/0.9 does", "<html>hello</html>", /^the answer is not HTTP$/],
    ["a frame of HTTP/2", "\0\0\0\x04\0\0\0\0\0", /^the answer is not HTTP$/],
    ["the status 099 after an informational answer", "HTTP/1.1 102 X\r\n\r\nHTTP/1.1 099 X\r\n\r\n", /is not HTTP$/],
    ["101 without a protocol", "HTTP/1.1 101 X\r\n\r\n", /^answered 101: the broker does not switch protocols$/],
    ["100, for which nobody asked", "HTTP/1.1 100 Continue\r\n\r\n", /^answered 100: the broker asks nobody/],
    [
      "two lengths",
      "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
      /the answer is not as long as its header says$/,
    ],
    ["huge headers", `HTTP/1.1 200 OK\r\nx: ${"y".repeat(20_000)}\r\n\r\n`, /^the answer's headers are too long$/],
    ["a close without an answer", "", /^the connection was closed before the answer was whole$/],
    ["only an informational answer", "HTTP/1.1 102 Processing\r\n\r\n", /^the connection was closed before/],
    ["half a head and a close", "HTTP/1.1 200 OK\r\ncont", /closed before the answer was whole$/],
    [
      "half a body and a close",
      "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab",
      /^answered 200, but .*(closed|length)/,
    ],
    ["half a chunk and a close", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nab", /^answered 200, but /],
    [
      "a switch of protocols",
      "HTTP/1.1 101 X\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
      /^answered 101: the broker does not switch protocols$/,
    ],
  ])("that sends %s fails", async (_name, text, reason) => {
    await using receiver = await startTcpReceiver((socket) => {
      socket.once("data", () => socket.end(text));
    });
    const outcome = await attemptAt(receiver.url);
    expect(outcome).toEqual({ status: "failed", reason: expect.stringMatching(reason) });
  });

  test("that resets the connection in the middle of its answer fails", async () => {
    await using receiver = await startTcpReceiver((socket) => {
      socket.once("data", () =>
        socket.write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab", () => socket.resetAndDestroy()),
      );
    });
    const outcome = await attemptAt(receiver.url);
    expect(outcome).toEqual({ status: "failed", reason: expect.stringMatching(/connection was (reset|closed)/) });
  });

  test("that speaks plain HTTP on an https url fails with a TLS error", async () => {
    await using receiver = await startReceiver((response) => response.end());
    const outcome = await attemptAt(receiver.url.replace("http:", "https:"));
    expect(outcome).toEqual({ status: "failed", reason: expect.stringMatching(/^TLS failed \(ERR_SSL/) });
  });

  test("that has no certificate fails with a TLS error", async () => {
    const server = createTlsServer({});
    await using receiver = await startTcpReceiver((socket) => {
      server.emit("connection", socket);
    });
    const outcome = await attemptAt(receiver.url.replace("http:", "https:"));
    expect(outcome).toEqual({ status: "failed", reason: expect.stringMatching(/^TLS failed \(/) });
  });

  test("fails only its own attempt", async () => {
    await using receiver = await startReceiver((response, { path }) => {
      if (path === "/good") response.end();
    });
    const clock = new ManualClock();
    const sink = makeSink({ clock });
    const hung = sink.attempt(notificationTo({ url: receiver.url }), unaborted);
    const good = notificationTo({ url: receiver.url.replace("/hook", "/good") });
    for (let round = 0; round < 20; round += 1) {
      expect(await sink.attempt(good, unaborted)).toEqual({ status: "accepted" });
    }
    clock.expire();
    expect(await hung).toMatchObject({ status: "failed" });
  });
});

function writeForEver(response: { write(text: string, done: (error?: Error | null) => void): void }): void {
  response.write("x".repeat(16_384), (error) => {
    if (error === undefined || error === null) writeForEver(response);
  });
}
