import { expect, it } from "vitest";
import { version } from "../version.ts";
import { loadConfig } from "./load-config.ts";
import { mqttPortOf, servesMqtt } from "./mqtt-ports.ts";

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
] as const)("finds what is missing or idle in %j", (argv, problems) => {
  expect(problemsOf(...argv)).toEqual(problems);
});

it.each([
  [[], { port: 1883, isChosen: false }, true],
  [["--mqtt-port", "1884"], { port: 1884, isChosen: true }, true],
  [["--mqtt-port", "off"], undefined, false],
] as const)("takes the MQTT port from %j", (argv, port, serves) => {
  const outcome = load(...argv);
  if (outcome.status !== "loaded") throw new Error(outcome.status);
  expect(mqttPortOf(outcome.config)).toEqual(port);
  expect(servesMqtt(outcome.config)).toBe(serves);
});

it("refuses MQTT on nodes that share a database, unless a setting allows it", () => {
  expect(mqttPortOf({ mqttPort: undefined, databaseUrl: "postgres://db" })).toBeUndefined();
});
