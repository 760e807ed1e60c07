import { expect, it } from "vitest";
import { version } from "../version.ts";
import { loadConfig } from "./load-config.ts";
import { portOf, serves } from "./connection-ports.ts";

function load(...argv: readonly string[]) {
  return loadConfig({ env: {}, argv, readFile: () => "", version });
}

function problemsOf(...argv: readonly string[]): readonly string[] {
  const outcome = load(...argv);
  return outcome.status === "refused" ? outcome.problems : [];
}

it.each([
  [
    ["--mqtt-tls-port", "8883"],
    [
      "STELE_MQTT_TLS_CERTIFICATE_FILE must be given with STELE_MQTT_TLS_PORT",
      "STELE_MQTT_TLS_KEY_FILE must be given with STELE_MQTT_TLS_PORT",
    ],
  ],
  [["--mqtt-tls-key-file", "key.pem"], ["STELE_MQTT_TLS_KEY_FILE has no effect without STELE_MQTT_TLS_PORT"]],
  [["--mqtt-tls-port", "0", "--mqtt-tls-key-file", "k", "--mqtt-tls-certificate-file", "c"], []],
  [["--stomp-tls-key-file", "key.pem"], ["STELE_STOMP_TLS_KEY_FILE has no effect without STELE_STOMP_TLS_PORT"]],
  [["--mqtt-port", "8080"], ["STELE_MQTT_PORT is 8080, like STELE_PORT"]],
  [["--admin-port", "61613", "--stomp-port", "61613"], ["STELE_ADMIN_PORT is 61613, like STELE_STOMP_PORT"]],
  [["--port", "0", "--admin-port", "0", "--mqtt-port", "0"], []],
  [["--host", "127.0.0.2", "--port", "9000", "--admin-port", "9000"], []],
] as const)("reports settings that are missing, have no effect, or give a port twice in %j", (argv, problems) => {
  expect(problemsOf(...argv)).toEqual(problems);
});

it.each([
  [[], { port: 1883, isConfigured: false }, true],
  [["--mqtt-port", "1884"], { port: 1884, isConfigured: true }, true],
  [["--mqtt-port", "off"], undefined, false],
] as const)("takes the MQTT port from %j", (argv, port, isServed) => {
  const outcome = load(...argv);
  if (outcome.status !== "loaded") throw new Error(outcome.status);
  expect(portOf(outcome.config, "mqtt")).toEqual(port);
  expect(serves(outcome.config, "mqtt")).toBe(isServed);
});

const ports = { mqttPort: undefined, mqttTlsPort: "off", stompPort: undefined, stompTlsPort: "off" } as const;

it("serves STOMP at its default port, unless it is off", () => {
  expect(portOf(ports, "stomp")).toEqual({ port: 61_613, isConfigured: false });
  expect(serves({ ...ports, stompPort: "off" }, "stomp")).toBe(false);
});

it("allows MQTT and STOMP on nodes that share a database", () => {
  const groups = JSON.stringify([{ id: "1", endpoints: ["http://chain"] }]);
  const database = ["--database-url", "postgres://db/stele", "--advertised-address", "node:1", "--groups", groups];
  expect(problemsOf(...database, "--mqtt-port", "1883", "--stomp-port", "61613")).toEqual([]);
});
