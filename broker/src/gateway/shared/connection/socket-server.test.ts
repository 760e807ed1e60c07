import { createServer } from "node:net";
import { expect, it } from "vitest";
import { silentLogger } from "../../../lib/logger.ts";
import { Connections } from "./connections.ts";
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

function createSockets() {
  const logged: string[] = [];
  const server = createServer();
  const connections = new Connections({
    protocol: "MQTT",
    logger: { ...silentLogger, error: (message) => void logged.push(message) },
    metrics: { watchConnections: () => {} },
    broker: { mayConnect: () => true },
    slices: { pause: () => undefined },
    connectionsMax: 10,
    connectTimeoutMs: 1_000,
    create: () => expect.fail("nobody connects"),
  });
  return { sockets: new SocketServer(server, connections), server, logged };
}
