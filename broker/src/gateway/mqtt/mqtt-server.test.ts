import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { testCaller } from "../../engine/testing/as-caller.ts";
import { MqttWorld } from "./testing/mqtt-world.ts";
import { RawClient } from "./testing/raw-client.ts";

it("counts connections over TCP and WebSocket together", async () => {
  const world = await MqttWorld.start({ connectionsMax: 2 });
  const upgrades = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  upgrades.on("connection", (webSocket) => {
    world.server.route.accept({ webSocket, caller: testCaller });
  });
  await once(upgrades, "listening");
  const { port } = upgrades.address() as AddressInfo; // listens on TCP
  await RawClient.connect(world.port, 5, { clientId: "first" });
  const second = new WebSocket(`ws://127.0.0.1:${port}`);
  await once(second, "open");
  const overWebSocket = new WebSocket(`ws://127.0.0.1:${port}`);
  await once(overWebSocket, "close");
  const overTcp = await RawClient.open(world.port, 5);
  await overTcp.closed;
  expect(second.readyState).toBe(WebSocket.OPEN);
  upgrades.close();
  await world.stop();
});
