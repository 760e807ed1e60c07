import { on, once } from "node:events";
import { connect, Socket } from "node:net";
import { describe, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import type { HttpServerOptions } from "../http-server.ts";
import type { UpgradedConnection, UpgradeRoute } from "../shared/connection/upgrade.ts";
import { bodyOf, sendRaw } from "../testing/raw-http.ts";
import { serve, testMetrics } from "../testing/serve.ts";

const path = "/echo";
const longBytesMax = 100_000;

/** A server with a protocol that sends each message back. */
async function serveEcho(options: Partial<HttpServerOptions> = {}, messageBytesMax = 1000) {
  const connections: UpgradedConnection[] = [];
  const route: UpgradeRoute = {
    path,
    protocol: "REST",
    subprotocols: ["echo.2", "echo"],
    needsSubprotocol: true,
    messageBytesMax,
    accept: (connection) => {
      connections.push(connection);
      connection.webSocket.on("message", (data, isBinary) => connection.webSocket.send(data, { binary: isBinary }));
    },
    endAll: async () => {},
  };
  const server = await serve({}, { basePath: "ctx", upgrades: [route], ...options });
  return { ...server, connections, address: `${server.url.replace("http", "ws")}${path}` };
}

/** The headers of an upgrade request, without the empty line at the end. */
const headOf = (line: string, upgrade: string) =>
  `${line} HTTP/1.1\r\nhost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: ${upgrade}\r\nHTTP2-Settings: AAMA\r\n`;

/** Status and body of the answer to a refused client. */
async function refusalOf(client: WebSocket): Promise<unknown> {
  client.on("error", () => {});
  const [, response] = (await once(client, "unexpected-response")) as [
    unknown,
    NodeJS.ReadableStream & { statusCode: number },
  ]; // What ws emits.
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer); // No encoding is set.
  return [response.statusCode, JSON.parse(Buffer.concat(chunks).toString())];
}

describe("a WebSocket connection", () => {
  it("gets the first of the route's subprotocols that the client offers, and the client's caller", async () => {
    await using server = await serveEcho();
    const client = new WebSocket(`${server.address}?x=1`, ["other", "echo", "echo.2"]);
    await once(client, "open");
    client.send("hello");
    const [data] = await once(client, "message");
    expect([String(data), client.protocol]).toEqual(["hello", "echo.2"]);
    const [connection] = server.connections;
    expect(connection?.caller).toMatchObject({
      address: "127.0.0.1",
      protocol: "REST",
      principal: { kind: "anonymous" },
    });
    client.close();
    await once(client, "close");
  });

  it("ends with 1009 after a message over the route's limit", async () => {
    await using server = await serveEcho();
    const client = new WebSocket(server.address, ["echo"]);
    await once(client, "open");
    client.send("x".repeat(1001));
    expect((await once(client, "close"))[0]).toBe(1009);
  });

  it("counts the memory of an unfinished message until the message or the connection ends", async () => {
    const readings: (() => number)[] = [];
    const metrics = { ...testMetrics, watchBytesInFlight: (read: () => number) => void readings.push(read) };
    await using server = await serveEcho({ metrics }, longBytesMax);
    const client = new WebSocket(server.address, ["echo"]);
    await once(client, "open");
    const inFlight = async (): Promise<number> => {
      client.ping("x".repeat(100)); // the pong shows that the server has read all earlier bytes
      await once(client, "pong");
      return readings[0]?.() ?? 0;
    };
    client.send("x".repeat(50_000), { fin: false });
    expect(await inFlight()).toBeGreaterThanOrEqual(50_000);
    for (let count = 0; count < 10; count += 1) expect(await inFlight()).toBeLessThan(50_100);
    client.send("", { fin: true });
    await once(client, "message");
    for (let count = 0; count < 100; count += 1) expect(await inFlight()).toBe(0);
    client.send("x".repeat(50_000), { fin: false });
    expect(await inFlight()).toBeGreaterThanOrEqual(50_000);
    const [connection] = server.connections;
    const closed = once(connection?.webSocket ?? client, "close");
    client.terminate();
    await closed;
    expect(readings[0]?.()).toBe(0);
  });

  it("ends if others need the memory of its unfinished message", async () => {
    await using server = await serveEcho({ memoryInFlightBytesMax: 120_000 }, longBytesMax);
    const clients: WebSocket[] = [];
    for (let count = 0; count < 3; count += 1) {
      const client = new WebSocket(server.address, ["echo"]);
      await once(client, "open");
      client.send("x".repeat(50_000), { fin: false });
      client.ping();
      if (count < 2) await once(client, "pong");
      clients.push(client);
    }
    const [oldest, second, newest] = clients;
    await once(oldest ?? expect.fail("opened"), "close");
    for (const client of [second, newest]) {
      client?.send("y", { fin: true });
      const [data] = await once(client ?? expect.fail("opened"), "message");
      expect(String(data)).toHaveLength(50_001);
    }
  });

  it("ends with 1008 after more than 1,024 fragments of a message", async () => {
    await using server = await serveEcho({}, longBytesMax);
    const client = new WebSocket(server.address, ["echo"]);
    await once(client, "open");
    for (let count = 0; count <= 1024; count += 1) client.send("x", { fin: false });
    expect((await once(client, "close"))[0]).toBe(1008);
  });

  it("ends if the bytes of a frame come one by one, and counts the memory of each", async () => {
    const readings: (() => number)[] = [];
    const metrics = { ...testMetrics, watchBytesInFlight: (read: () => number) => void readings.push(read) };
    await using server = await serveEcho({ metrics }, longBytesMax);
    const { hostname, port } = new URL(server.url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    const names = "sec-websocket-version: 13\r\nsec-websocket-protocol: echo\r\n";
    const key = "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
    socket.write(`${headOf("GET /ctx/echo", "websocket")}${names}${key}\r\n`);
    await once(socket, "data");
    socket.write(Buffer.of(0x82, 0xfe, 0xc3, 0x50, 0, 0, 0, 0)); // A frame of 50,000 bytes, with a mask of zeros.
    socket.resume();
    let most = 0;
    for (let sent = 0; !socket.closed && sent < 10_000; sent += 1) {
      socket.write(Buffer.of(0));
      await new Promise((resolve) => setImmediate(resolve)); // The server reads the byte.
      most = Math.max(most, readings[0]?.() ?? 0);
    }
    expect(socket.closed).toBe(true);
    expect(most).toBeGreaterThan(8192 * 200);
  });

  it("queues one pong for a client that sends pings and reads nothing, and answers the newest ping once the client reads", async () => {
    await using server = await serveEcho();
    const client = new WebSocket(server.address, ["echo"]);
    await once(client, "open");
    const { webSocket } = server.connections[0] ?? expect.fail("opened");
    const pingsCount = 100_000; // Their pongs are more than the system's buffers hold.
    let received = 0;
    const all = new Promise<void>((resolve) =>
      webSocket.on("ping", () => void ((received += 1) === pingsCount && resolve())),
    );
    client.pause();
    for (let count = 0; count < pingsCount; count += 1) client.ping("x".repeat(125));
    await all;
    expect(webSocket.bufferedAmount).toBeLessThan(1000);
    client.ping("last");
    client.resume();
    const answers = on(client, "pong");
    for await (const [data] of answers) if (String(data) === "last") break;
    client.terminate();
  });

  it("has TCP keep-alive on, with probes after 60 s", async () => {
    const probed = vi.spyOn(Socket.prototype, "setKeepAlive");
    await using server = await serveEcho();
    const client = new WebSocket(server.address, ["echo"]);
    await once(client, "open");
    expect(probed).toHaveBeenCalledWith(true, 60_000);
    probed.mockRestore();
    client.terminate();
  });
});

describe("a request for a WebSocket connection is refused", () => {
  it.each([
    ["from a foreign page", { origin: "http://evil.example" }],
    ["for a foreign host", { headers: { host: "evil.example" } }],
  ])("%s, with the same error as any other request", async (_, options) => {
    await using server = await serveEcho();
    const refusal = await refusalOf(new WebSocket(server.address, ["echo"], options));
    expect(refusal).toEqual([403, expect.objectContaining({ code: 100_703 })]);
    expect(server.connections).toEqual([]);
  });

  it("if it names no subprotocol of the route", async () => {
    await using server = await serveEcho();
    const message = "a parameter is missing or malformed: the subprotocols here are echo.2, echo";
    expect(await refusalOf(new WebSocket(server.address, ["other"]))).toEqual([400, { code: 200_001, message }]);
  });

  it("if it names no subprotocol of the route, even if its request line has scheme and host", async () => {
    await using server = await serveEcho();
    const answer = await sendRaw(server.url, [`${headOf("GET http://localhost/ctx/echo", "websocket")}\r\n`]);
    expect(answer).toMatch(/^HTTP\/1.1 400 .*the subprotocols here are echo.2, echo/s);
  });

  it("if it has no Host header", async () => {
    await using server = await serveEcho();
    const head = headOf("GET /ctx/echo", "websocket").replace("host: localhost\r\n", "");
    expect(await sendRaw(server.url, [`${head}\r\n`])).toMatch(/^HTTP\/1.1 400 .*the request has no Host header/s);
  });

  it("and its connection closed if an earlier request of the connection has no answer yet", async () => {
    const route = { connection: "upgrade", upgrade: "websocket" };
    await using server = await serveEcho();
    const early = `GET /ctx/rest/exist?topic=a HTTP/1.1\r\nhost: localhost\r\n\r\n`;
    const head = Object.entries(route).map(([name, value]) => `${name}: ${value}\r\n`);
    const upgrade = `GET /ctx/echo HTTP/1.1\r\nhost: localhost\r\n${head.join("")}\r\n`;
    expect(await sendRaw(server.url, [early + upgrade])).toBe("");
    expect(server.connections).toEqual([]);
  });

  it("and lets the server stop, even if the client keeps its side of the connection open", async () => {
    const server = await serveEcho({ closeDeadlineMs: 1 });
    const { hostname, port } = new URL(server.url);
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    socket.write(`${headOf("GET /ctx/echo", "websocket")}\r\n`);
    await once(socket.resume(), "end");
    await server.close();
    socket.destroy();
  });

  it("and the server survives a client that resets its connection meanwhile", async () => {
    await using server = await serveEcho();
    const { hostname, port } = new URL(server.url);
    const request = `${headOf("GET /ctx/echo", "websocket")}origin: http://evil.example\r\n\r\n`;
    for (let count = 0; count < 20; count += 1) {
      const socket = connect({ host: hostname, port: Number(port) });
      socket.on("error", () => {});
      await once(socket, "connect");
      socket.write(request, () => socket.resetAndDestroy());
      await once(socket, "close");
    }
    expect((await fetch(`${server.url}/health/live`)).status).toBe(200);
  });

  it("with 426 if it has a body", async () => {
    await using server = await serveEcho();
    const head = `${headOf("GET /ctx/echo", "websocket")}sec-websocket-protocol: echo\r\ncontent-length: 2\r\n\r\n`;
    const last = "GET /ctx/health/live HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    expect(await sendRaw(server.url, [head, `{}${last}`])).toContain("HTTP/1.1 426 ");
    expect(server.connections).toEqual([]);
  });

  it("with 426 if it does not ask for an upgrade", async () => {
    await using server = await serveEcho();
    const response = await fetch(`${server.url}${path}`);
    expect([response.status, response.headers.get("upgrade")]).toEqual([426, "websocket"]);
  });
});

describe("a request for an upgrade that the server does not offer", () => {
  const last = "GET /ctx/health/live HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

  it("is served as plain HTTP with its body, and so is the next request", async () => {
    await using server = await serveEcho();
    const body = "topic=a&content=b";
    const post = `${headOf("POST /ctx/rest/publish", "h2c")}content-type: application/x-www-form-urlencoded\r\ncontent-length: ${body.length}\r\n\r\n`;
    const rest = body.slice(5);
    // Since version 25, Node loses a request in the same packet.
    const parts = Number.parseInt(process.versions.node, 10) < 25 ? [rest + last] : [rest, last];
    const answers = await sendRaw(server.url, [post + body.slice(0, 5), ...parts]);
    expect(answers.match(/HTTP\/1.1 200 OK/g)).toHaveLength(2);
    expect(answers).toContain('"status":"SUCCESS"');
    expect(bodyOf(bodyOf(answers))).toContain("live");
    expect(server.calls).toMatchObject([{ operation: "publish", call: { topic: "a", content: Buffer.from("b") } }]);
  });

  it("is refused with too many headers, and its body is not served as a request", async () => {
    await using server = await serveEcho();
    const body = "GET /ctx/rest/exist?topic=a HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    const more = `${"upgrade: h2c\r\n".repeat(100)}${"x: y\r\n".repeat(200)}content-length: ${body.length}\r\n\r\n`;
    const answers = await sendRaw(server.url, [`${headOf("POST /ctx/jsonrpc", "h2c")}${more}${body}`]);
    expect(answers).toMatch(/^HTTP\/1.1 431 /);
    expect(server.calls).toEqual([]);
  });

  it("leaves no listeners on a connection whose every request asks for an upgrade", async () => {
    const warned = vi.spyOn(process, "emitWarning");
    await using server = await serveEcho();
    const { hostname, port } = new URL(server.url);
    const socket = connect({ host: hostname, port: Number(port) });
    for (let count = 0; count < 20; count += 1) {
      socket.write(`${headOf("GET /ctx/rest/exist?topic=a", "h2c")}\r\n`);
      expect(bodyOf(String((await once(socket, "data"))[0]))).toBe("true");
    }
    expect(warned).not.toHaveBeenCalled(); // Node warns of more than ten listeners of one event.
    warned.mockRestore();
    socket.destroy();
  });

  it("is served as plain HTTP if no WebSocket route has its path", async () => {
    await using server = await serveEcho();
    const answers = await sendRaw(server.url, [`${headOf("GET /ctx/rest/exist?topic=a", "websocket")}\r\n${last}`]);
    expect(answers).toContain("\r\n\r\ntrueHTTP/1.1 200 OK");
  });
});

describe("a server that stops", () => {
  it("asks each peer to close with 1001, and is drained when all have closed", async () => {
    const server = await serveEcho({ closeDeadlineMs: 600_000 });
    const client = new WebSocket(server.address, ["echo"]);
    await once(client, "open");
    const closed = once(client, "close");
    await server.close();
    expect((await closed)[0]).toBe(1001);
  });

  it("refuses a request that arrives meanwhile with an error that allows a retry", async () => {
    const server = await serveEcho({ closeDeadlineMs: 600_000 });
    const { hostname, port } = new URL(server.url);
    const socket = connect({ host: hostname, port: Number(port) }).setEncoding("utf8");
    const [begin = "", end = ""] = headOf("GET /ctx/echo", "websocket").split("Connection");
    socket.write(begin); // Else the server would close the connection as idle.
    const client = new WebSocket(server.address, ["echo"]); // Accepted after the socket.
    await once(client, "open");
    const closed = server.close();
    await once(client, "close");
    socket.write(`Connection${end}sec-websocket-protocol: echo\r\n\r\n`);
    let answer = "";
    for await (const text of socket) answer += String(text);
    expect(answer).toContain("HTTP/1.1 503 ");
    expect(JSON.parse(bodyOf(answer))).toMatchObject({ code: 200_300 });
    await closed;
  });

  it("disconnects a peer that does not close within the deadline", async () => {
    const server = await serveEcho({ closeDeadlineMs: 1 });
    const { hostname, port } = new URL(server.url);
    const socket = connect({ host: hostname, port: Number(port) });
    const key =
      "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==";
    socket.write(`GET /ctx/echo HTTP/1.1\r\nhost: localhost\r\n${key}\r\nsec-websocket-protocol: echo\r\n\r\n`);
    expect(String((await once(socket, "data"))[0])).toMatch(/^HTTP\/1.1 101 /);
    const closed = once(socket.resume(), "close");
    await server.close();
    await closed;
  });
});
