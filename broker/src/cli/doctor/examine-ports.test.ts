import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { CheckedSettings, Place } from "../broker-settings.ts";
import { examinePorts, type PortSources } from "./examine-ports.ts";

let server: Server;
let port = 0;
beforeAll(async () => {
  server = createServer((socket) => socket.destroy()).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  port = typeof address === "object" ? (address?.port ?? 0) : 0;
});
afterAll(async () => {
  server.close();
  await once(server, "close");
});

function examine(sources: Partial<PortSources>) {
  const { signal } = new AbortController();
  return examinePorts({ listeners: undefined, settings: undefined, url: "http://127.0.0.1:1", signal, ...sources });
}

function settingsWith(...ports: readonly Place[]): CheckedSettings {
  return { dataDir: "", url: undefined, adminUrl: undefined, database: undefined, ports };
}

it("examines the MQTT port that the broker reports, and not its HTTP port", async () => {
  const listeners = [
    { name: "HTTP", address: "http://127.0.0.1:1" },
    { name: "MQTT", address: `mqtt://127.0.0.1:${port}` },
  ];
  expect(await examine({ listeners })).toEqual([
    { check: "port MQTT", status: "ok", detail: `port ${port} of 127.0.0.1 accepts connections` },
  ]);
});

it("connects to the host of the broker's URL if a listener is on every address", async () => {
  const listeners = [{ name: "MQTT", address: `mqtt://0.0.0.0:${port}` }];
  expect(await examine({ listeners })).toMatchObject([
    { status: "ok", detail: `port ${port} of 127.0.0.1 accepts connections` },
  ]);
});

it("reports a refused connection, with advice", async () => {
  const listeners = [{ name: "STOMP", address: "stomp://127.0.0.1:1" }];
  expect(await examine({ listeners })).toEqual([
    {
      check: "port STOMP",
      status: "failed",
      detail: "port 1 of 127.0.0.1: the connection was refused",
      advice: expect.stringContaining("firewall"),
    },
  ]);
});

it("warns that a loopback port is for the broker's own machine, if the URL names another one", async () => {
  const listeners = [{ name: "MQTT", address: `mqtt://127.0.0.1:${port}` }];
  expect(await examine({ listeners, url: "http://broker.example" })).toMatchObject([
    { status: "warning", detail: expect.stringContaining("own machine only") },
  ]);
});

it("examines the ports of the settings if the broker does not report its listeners", async () => {
  const settings = settingsWith({ name: "MQTT", host: "127.0.0.1", port });
  expect(await examine({ settings })).toMatchObject([{ check: "port MQTT", status: "ok" }]);
});

it("warns of a port of the settings that the broker does not serve", async () => {
  const settings = settingsWith({ name: "MQTT", host: "127.0.0.1", port: 1883 });
  expect(await examine({ settings, listeners: [] })).toMatchObject([
    { check: "port MQTT", status: "warning", detail: "port 1883 is not served" },
  ]);
});

it("warns if neither the broker nor the settings name ports, and accepts a broker that reports no listener", async () => {
  expect(await examine({})).toMatchObject([{ check: "ports", status: "warning" }]);
  expect(await examine({ listeners: [] })).toMatchObject([{ check: "ports", status: "ok" }]);
});
