import { createServer } from "node:net";
import { expect, it } from "vitest";
import { silentLogger } from "../../../lib/logger.ts";
import { Connections } from "./connections.ts";
import { SocketServer } from "./socket-server.ts";

it("logs a connection that cannot be accepted, and throws nothing", async () => {
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
  });
  const sockets = new SocketServer(server, connections);
  expect(() => server.emit("error", new Error("accept EMFILE"))).not.toThrow();
  expect(logged).toEqual(["MQTT connection not accepted"]);
  await sockets.drain();
});
