import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { createDeferred } from "../lib/deferred.ts";
import { silentLogger } from "../lib/logger.ts";
import { createHttpServer } from "./http-server.ts";
import { createFakeBroker } from "./testing/fake-broker.ts";
import { bodyOf, sendRaw, toPost } from "./testing/raw-http.ts";
import { serve, testMetrics } from "./testing/serve.ts";

/** A gate at which calls wait until it opens; `entered` resolves when the first call arrives. */
function createGate() {
  const entered = createDeferred<void>();
  const opened = createDeferred<boolean>();
  const pass = (): Promise<boolean> => {
    entered.resolve();
    return opened.promise;
  };
  return { entered: entered.promise, open: () => opened.resolve(true), pass };
}

const request = "GET /rest/open?topic=a HTTP/1.1\r\nhost: localhost\r\n\r\n";

describe("close", () => {
  it("finishes a request in progress, refuses new connections, and closes the connection", async () => {
    const gate = createGate();
    const server = await serve({ open: gate.pass }, { closeDeadlineMs: 600_000 });
    const answered = sendRaw(server.url, [request]);
    await gate.entered;
    const closed = server.close();
    await expect(fetch(`${server.url}/health/live`)).rejects.toThrow(/fetch failed/);
    gate.open();
    expect(bodyOf(await answered)).toBe("true");
    await closed;
  });

  it("aborts requests in progress after the deadline", async () => {
    const gate = createGate();
    const server = await serve({ open: gate.pass }, { closeDeadlineMs: 1 });
    const answered = sendRaw(server.url, [request]);
    await gate.entered;
    await server.close();
    expect(await answered).toBe("");
  });

  it("closes idle keep-alive connections", async () => {
    const server = await serve();
    const { hostname, port } = new URL(server.url);
    const socket = connect({ host: hostname, port: Number(port) });
    socket.write(request);
    await once(socket, "data");
    const ended = once(socket, "close");
    await server.close();
    await ended;
  });

  it("closes a connection that has not sent a request, as browsers and load balancers open in advance", async () => {
    const server = await serve({}, { closeDeadlineMs: 600_000 });
    const { hostname, port } = new URL(server.url);
    const socket = connect({ host: hostname, port: Number(port) });
    await once(socket, "connect");
    const ended = once(socket, "close");
    await server.close();
    await ended;
  });

  it.each([
    ["first request", ""],
    ["second request", "GET /rest/exist?topic=a HTTP/1.1\r\nhost: localhost\r\n\r\n"],
  ])(
    "closes a connection that has sent half of the headers of its %s, and finishes a request in progress",
    async (_, sent) => {
      const gate = createGate();
      const server = await serve({ open: gate.pass, exist: async () => true }, { closeDeadlineMs: 600_000 });
      const { hostname, port } = new URL(server.url);
      const socket = connect({ host: hostname, port: Number(port) });
      const half = once(socket, "close");
      socket.resume().write(`${sent}GET /rest/open?topic=a HTTP/1.1\r\nhost: loc`);
      await once(socket, "connect");
      const answered = sendRaw(server.url, [request]);
      await gate.entered;
      const closed = server.close();
      await half;
      gate.open();
      expect(bodyOf(await answered)).toBe("true");
      await closed;
    },
  );

  it("serves later requests on an open connection, and answers 503 on /health/ready", async () => {
    const gate = createGate();
    const asked = createGate();
    const health = () => {
      void asked.pass();
      return [];
    };
    const server = await serve({ open: gate.pass, health });
    const { hostname, port } = new URL(server.url);
    const socket = connect({ host: hostname, port: Number(port) });
    const received: string[] = [];
    socket.setEncoding("utf8").on("data", (text: string) => received.push(text));
    socket.write(request);
    await gate.entered;
    const closed = server.close();
    socket.write("GET /health/ready HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await asked.entered;
    gate.open();
    await once(socket, "close");
    await closed;
    const [first = "", second = ""] = received.join("").split(/(?=HTTP\/1.1 503)/);
    expect(bodyOf(first)).toBe("true");
    expect(second).toMatch(/connection: close/i);
    expect(JSON.parse(bodyOf(second))).toEqual({ status: "closing", groups: [] });
  });

  it("accepts connections during the delay, answers 503 on /health/ready, and closes each connection after its answer", async () => {
    const server = await serve({ open: () => Promise.resolve(true) });
    const { hostname, port } = new URL(server.url);
    const kept = connect({ host: hostname, port: Number(port) });
    const received: string[] = [];
    kept.setEncoding("utf8").on("data", (text: string) => received.push(text));
    kept.write(request);
    await once(kept, "data");
    expect(received.join("")).not.toMatch(/connection: close/i);
    const closed = server.close(400);
    kept.write(request);
    const [fresh] = await Promise.all([fetch(`${server.url}/health/ready`), once(kept, "close")]);
    expect([fresh.status, await fresh.json()]).toEqual([503, { status: "closing", groups: [] }]);
    expect(received.join("").match(/connection: close/gi)).toHaveLength(1);
    expect(received.join("").match(/\r\n\r\ntrue/g)).toHaveLength(2);
    await closed;
    await expect(fetch(`${server.url}/health/live`)).rejects.toThrow(/fetch failed/);
  });

  it("does nothing if the server is already closed", async () => {
    const server = await serve();
    await server.close();
    await server.close();
  });
});

describe("listen", () => {
  it("rejects if the port is in use", async () => {
    await using server = await serve();
    const port = Number(new URL(server.url).port);
    const second = createHttpServer({
      broker: createFakeBroker(),
      logger: silentLogger,
      basePath: "",
      extensionPrefix: "svc-",
      bodyBytesMax: 1,
      metrics: testMetrics,
      memoryInFlightBytesMax: 1,
      version: "0",
      defaultGroup: "1",
    });
    await expect(second.listen({ host: "127.0.0.1", port })).rejects.toMatchObject({ code: "EADDRINUSE" });
    await second.drain();
    await second.close();
  });
});

it.each(["teapot", "100-proceed", ""])(
  "serves a request with the unknown expectation %j like any other",
  async (expectation) => {
    await using server = await serve({ open: async () => true });
    const [own, foreign] = ["localhost", "evil.example"].map((host) =>
      toPost("/rest/open", Buffer.from('{"topic":"a"}'), {
        host,
        "content-type": "application/json",
        expect: expectation,
      }),
    );
    expect(bodyOf(await sendRaw(server.url, [own ?? ""]))).toBe("true");
    expect(await sendRaw(server.url, [foreign ?? ""])).toMatch(/^HTTP\/1.1 403 .*"code":100703/s);
  },
);
