import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { type Duplex, PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { testCaller } from "../../../engine/testing/as-caller.ts";
import { silentLogger } from "../../../lib/logger.ts";
import { Connections, type ConnectionsOptions } from "./connections.ts";
import { SocketServer } from "./socket-server.ts";

const anyPort = { host: "127.0.0.1", port: 0 };

it("logs a connection that cannot be accepted, and throws nothing", async () => {
  const { sockets, server, logged } = createSockets();
  await sockets.listen(anyPort, "mqtt");
  expect(() => server.emit("error", new Error("accept EMFILE"))).not.toThrow();
  expect(logged).toEqual(["MQTT connection not accepted"]);
  await sockets.drain();
});

it("rejects if it cannot listen, and logs nothing", async () => {
  const [first, second] = [createSockets(), createSockets()];
  const port = Number(new URL(await first.sockets.listen(anyPort, "mqtt")).port);
  await expect(second.sockets.listen({ ...anyPort, port }, "mqtt")).rejects.toThrow("EADDRINUSE");
  expect(second.logged).toEqual([]);
  await first.sockets.drain();
});

it("keeps the connections of 1,000 clients that come at once, until it can accept them", async () => {
  const { sockets } = createSockets();
  const { port } = new URL(await sockets.listen(anyPort, "mqtt"));
  // Blocks this process, so that it accepts none of them.
  const { status } = spawnSync(process.execPath, ["--eval", connectAll, "1000", port], { timeout: 10_000 });
  expect(status).toBe(0);
  await sockets.drain();
}, 20_000);

/** A program that ends when all of its connections are open. */
const connectAll = `
  const [count, port] = process.argv.slice(1).map(Number);
  let opened = 0;
  for (let number = 0; number < count; number += 1)
    require("node:net").connect(port, "127.0.0.1", () => { if (++opened === count) process.exit(0); });`;

it("drain serves new clients until its delay is over, and only then ends the connections", async () => {
  const ended: number[] = [];
  const since = performance.now();
  const { sockets, server, connections } = createSockets({
    create: (stream) => ({
      isBusy: false,
      endByStop: () => {
        ended.push(performance.now() - since);
        stream.destroy();
      },
    }),
  });
  server.on("connection", (socket) => connections.serve(socket, testCaller));
  const port = Number(new URL(await sockets.listen(anyPort, "mqtt")).port);
  const drained = sockets.drain(1_000);
  const client = connect(port, "127.0.0.1");
  await once(client, "connect");
  await Promise.all([drained, once(client, "close")]);
  expect(ended).toHaveLength(1);
  expect(ended[0]).toBeGreaterThan(990);
});

it("ends its connections in slices, before the drain is over", async () => {
  let ended = 0;
  const { sockets, connections } = createSockets({
    connectionsMax: 20,
    create: (_, __, onClosed) => {
      const connection = {
        isBusy: false,
        endByStop: () => {
          const until = performance.now() + 1;
          while (performance.now() < until); // Takes a millisecond of this turn.
          ended += 1;
          onClosed(connection);
        },
      };
      return connection;
    },
  });
  for (let count = 0; count < 20; count += 1) connections.serve(new PassThrough(), testCaller);
  const drained = sockets.drain();
  expect(ended).toBeGreaterThan(0);
  expect(ended).toBeLessThan(20);
  await drained;
  expect(ended).toBe(20);
});

it.each(["end", "close"])(
  "at the limit, accepts a client once the stream of an earlier connection has emitted '%s', even before the broker has ended that connection",
  (event) => {
    const served: Duplex[] = [];
    const create: ConnectionsOptions["create"] = (stream) => {
      served.push(stream);
      return { isBusy: false, endByStop: () => {} };
    };
    const { connections } = createSockets({ connectionsMax: 1, create });
    const [first, refused, second] = [new PassThrough(), new PassThrough(), new PassThrough()];
    connections.serve(first, testCaller);
    connections.serve(refused, testCaller);
    first.emit(event);
    connections.serve(second, testCaller);
    expect(served).toEqual([first, second]);
    expect(refused.destroyed).toBe(true);
  },
);

function createSockets(options: Partial<ConnectionsOptions> = {}) {
  const logged: string[] = [];
  const server = createServer();
  const connections = new Connections({
    protocol: "MQTT",
    logger: { ...silentLogger, error: (message) => void logged.push(message) },
    metrics: { watchConnections: () => {} },
    broker: { mayConnect: () => true },
    connectionsMax: 10,
    connectTimeoutMs: 1_000,
    create: () => expect.fail("nobody connects"),
    ...options,
  });
  return { sockets: new SocketServer(server, connections), server, connections, logged };
}
