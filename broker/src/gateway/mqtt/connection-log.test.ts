import { connect as connectTls } from "node:tls";
import { BrokerError } from "@stele/wire";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type LogFields, type Logger, silentLogger } from "../../lib/logger.ts";
import type { Ledger } from "../../ports/ledger.ts";
import { connectionLinesMax } from "../shared/connection/limits.ts";
import { MqttWorld, type MqttWorldOptions } from "./testing/mqtt-world.ts";
import { RawClient } from "./testing/raw-client.ts";

let lines: (readonly [message: string, fields: LogFields | undefined])[];
let world: MqttWorld;
beforeEach(async () => {
  lines = [];
  world = await start();
});
afterEach(() => world.stop());

const note = (message: string, fields?: LogFields): void => void lines.push([message, fields]);

function start(options: MqttWorldOptions = {}): Promise<MqttWorld> {
  const logger: Logger = { ...silentLogger, info: note, warn: note };
  return MqttWorld.start({ logger, connectionsMax: 2, ...options });
}

const address = "127.0.0.1";

it("logs the client whose CONNECT is refused, with a shortened identifier", async () => {
  const client = await RawClient.open(world.port, 5);
  client.send({ cmd: "connect", clientId: "c".repeat(2_000), clean: true, keepalive: 0 });
  await client.closed;
  const reason = "the client identifier has more than 1024 bytes";
  expect(lines).toEqual([["MQTT connection refused", { reason, clientId: "c".repeat(100), address }]]);
});

it("logs the client whose connection ends, and the setting whose limit it exceeded", async () => {
  const client = await RawClient.connect(world.port, 5, { clientId: "meter" });
  client.send({ cmd: "publish", topic: "a", payload: "x", qos: 1, messageId: 1, properties: { topicAlias: 101 } });
  await client.closed;
  const reason = "topic alias 101 is over the limit of 100 (mqttTopicAliasMax)";
  expect(lines).toEqual([["MQTT connection ended", { reason, clientId: "meter", address }]]);
});

it("logs the client whose publish of QoS 0 is refused, and the reason", async () => {
  const client = await RawClient.connect(world.port, 5, { clientId: "meter" });
  client.send({ cmd: "publish", topic: "ümlaut", payload: "x", qos: 0 });
  client.send({ cmd: "pingreq" });
  await client.next("pingresp");
  const reason: unknown = expect.stringContaining("invalid character");
  const fields = { topic: "ümlaut", code: 100106, reason, clientId: "meter", address };
  expect(lines).toEqual([["MQTT publish of QoS 0 refused", fields]]);
});

it.each([
  ["of an unknown outcome", "transactionTimeout", "its outcome is unknown"],
  ["that met no reachable store", "storeUnreachable", "200207 the broker's database cannot be reached"],
] as const)("logs why a publish %s ends the connection", async (_, name, why) => {
  await world.stop();
  const change = (ledger: Ledger): void => {
    ledger.append = () => Promise.reject(new BrokerError(name));
  };
  world = await start({ change });
  await world.broker.open({ topic: "a", groupId: undefined });
  const client = await RawClient.connect(world.port, 4, { clientId: "meter" });
  client.send({ cmd: "publish", topic: "a", payload: "x", qos: 1, messageId: 1 });
  await client.closed;
  const reason = `the broker can neither acknowledge nor refuse a publish or its release: ${why}`;
  expect(lines).toContainEqual(["MQTT connection ended", { reason, clientId: "meter", address }]);
});

it("logs that another connection took the session over", async () => {
  const first = await RawClient.connect(world.port, 5, { clientId: "meter" });
  await RawClient.connect(world.port, 5, { clientId: "meter" });
  await first.closed;
  const reason = "another connection with this client identifier took the session over";
  expect(lines).toEqual([["MQTT connection ended", { reason, clientId: "meter", address }]]);
});

it("logs that the limit of connections is reached, and the setting of the limit", async () => {
  await RawClient.connect(world.port, 5, { clientId: "one" });
  await RawClient.connect(world.port, 5, { clientId: "two" });
  await (await RawClient.open(world.port, 5)).closed;
  const fields = { address, connectionsMax: 2, setting: "mqttConnectionsMax" };
  expect(lines).toEqual([["MQTT connection refused: the limit of open connections is reached", fields]]);
});

it("logs that a client began a TLS handshake on the port without TLS, and names the port's setting", async () => {
  const client = connectTls({ host: "127.0.0.1", port: world.port, rejectUnauthorized: false });
  await new Promise((resolve) => client.once("error", resolve));
  const reason = "the client began a TLS handshake; see mqttTlsPort";
  expect(lines).toEqual([["MQTT connection ended", { reason, address }]]);
});

async function sendNoConnect(): Promise<void> {
  const client = await RawClient.open(world.port, 5);
  client.sendBytes(Buffer.from("GET / HTTP/1.1"));
  await client.closed;
}

it("logs the first connections of a burst that end, then a few each second, with the number of those left out", async () => {
  const now = performance.now();
  const clock = vi.spyOn(performance, "now").mockReturnValue(now);
  for (let count = 0; count < connectionLinesMax + 5; count += 1) await sendNoConnect();
  expect(lines).toHaveLength(connectionLinesMax);
  clock.mockReturnValue(now + 1000);
  await sendNoConnect();
  clock.mockRestore();
  expect(lines.at(-1)).toEqual([
    "MQTT connection ended",
    expect.objectContaining({ reason: "the first bytes are not a CONNECT", omitted: 5 }),
  ]);
});
