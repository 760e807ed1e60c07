import { once } from "node:events";
import { createServer } from "node:net";
import { expect, it } from "vitest";
import { silentLogger } from "../lib/logger.ts";
import { checkPlaces, closeAll, type ConfiguredPlace, listenAll, type PlacedListener } from "./listen.ts";

const place: ConfiguredPlace = { host: "127.0.0.1", port: 0, hostSetting: "host", portSetting: "port" };

/** A listener, on a free port by default, that logs the calls that it gets. */
function listenerOn(name: string, log: string[], at: ConfiguredPlace = place): PlacedListener {
  const server = createServer();
  const listener = {
    name,
    listen: async ({ host, port }: ConfiguredPlace) => {
      server.listen(port, host);
      await once(server, "listening");
      log.push(`${name} listens`);
      return name;
    },
    drain: async () => {
      log.push(`${name} drains`);
      if (name === "broken") throw new Error("drain failed");
      await new Promise(setImmediate);
      log.push(`${name} is drained`);
    },
    close: async () => {
      log.push(`${name} closes`);
      server.close();
    },
  };
  return { listener, place: at };
}

it("starts listeners in order, drains all at once, and closes none before all are drained", async () => {
  const log: string[] = [];
  const listeners = [listenerOn("one", log), listenerOn("two", log)];
  expect(await listenAll(listeners, silentLogger)).toEqual([
    { name: "one", address: "one" },
    { name: "two", address: "two" },
  ]);
  await closeAll(listeners, 0);
  const [stops, ends, closes] = [
    ["one drains", "two drains"],
    ["one is drained", "two is drained"],
    ["one closes", "two closes"],
  ];
  expect(log).toEqual(["one listens", "two listens", ...stops, ...ends, ...closes]);
});

it("closes every listener even if one fails to drain, and then throws its error", async () => {
  const log: string[] = [];
  const listeners = [listenerOn("one", log), listenerOn("broken", log)];
  await listenAll(listeners, silentLogger);
  await expect(closeAll(listeners, 0)).rejects.toThrow("drain failed");
  expect(log.slice(-2)).toEqual(["one closes", "broken closes"]);
});

it.each<[Partial<ConfiguredPlace>, RegExp]>([
  [{}, /^Port \d+ of 127\.0\.0\.1 is taken: .* by --request-body-bytes-max or STELE_REQUEST_BODY_BYTES_MAX\.$/],
  [
    { host: "192.0.2.1", port: 0 },
    /^192\.0\.2\.1 is not an address of this machine\. Choose one by --advertised-address or STELE_ADVERTISED_ADDRESS:/,
  ],
])("names the setting to change if it cannot listen: %j", async (change, message) => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const address = taken.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const settings = { hostSetting: "advertisedAddress", portSetting: "requestBodyBytesMax" } as const; // Any two but those of HTTP.
  const listener = listenerOn("one", [], { ...place, port, ...settings, ...change });
  await expect(listenAll([listener], silentLogger)).rejects.toThrow(message);
  taken.close();
});

it("leaves out an optional listener that cannot listen, with a warning that names the setting", async () => {
  const log: string[] = [];
  const one = listenerOn("one", log);
  await listenAll([one], silentLogger);
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const address = taken.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const place: ConfiguredPlace = {
    host: "127.0.0.1",
    port: address.port,
    hostSetting: "host",
    portSetting: "mqttPort",
    isOptional: true,
  };
  const warnings: unknown[] = [];
  const logger = { ...silentLogger, warn: (_: string, fields: unknown) => void warnings.push(fields) };
  await checkPlaces([place]);
  expect(await listenAll([listenerOn("two", log, place), listenerOn("three", log)], logger)).toEqual([
    { name: "three", address: "three" },
  ]);
  expect(warnings).toEqual([{ reason: expect.stringMatching(/ is taken: .* by --mqtt-port or STELE_MQTT_PORT\.$/) }]);
  taken.close();
});
