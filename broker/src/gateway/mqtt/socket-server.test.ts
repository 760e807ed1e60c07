import { createServer } from "node:net";
import { expect, it } from "vitest";
import { silentLogger } from "../../lib/logger.ts";
import { MemoryBudget } from "../in-flight/memory-budget.ts";
import { createFakeBroker } from "../testing/fake-broker.ts";
import { noMqttMetrics } from "./metrics.ts";
import { MqttConnections } from "./mqtt-connections.ts";
import { SocketServer } from "./socket-server.ts";
import { testSettings } from "./testing/mqtt-world.ts";

it("goes on where a connection cannot be accepted", async () => {
  const logged: string[] = [];
  const server = createServer();
  const budgetMetrics = { connectionEnded: () => {}, watchBytesInFlight: () => {} };
  const connections = new MqttConnections({
    broker: createFakeBroker(),
    logger: { ...silentLogger, error: (message) => void logged.push(message) },
    settings: testSettings,
    metrics: noMqttMetrics,
    newClientId: () => "client",
    connectionsMax: 10,
    budget: new MemoryBudget({ bytesMax: 1_000, metrics: budgetMetrics }),
  });
  const sockets = new SocketServer(server, connections);
  expect(() => server.emit("error", new Error("accept EMFILE"))).not.toThrow();
  expect(logged).toEqual(["MQTT connection not accepted"]);
  await sockets.drain();
});
