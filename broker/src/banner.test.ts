import { expect, test } from "vitest";
import { toBanner } from "./banner.ts";
import { loadConfig } from "./config/load-config.ts";
import type { Config } from "./config/settings.ts";
import type { GroupHealth } from "./engine/broker.ts";
import { version } from "./version.ts";

const up = { ready: true, reason: undefined, indexedBlock: 1, chain: { chainId: 7, other: "x", signer: "0xaa" } };
const down = { ready: false, reason: "http://two: the connection was refused", indexedBlock: -1 };

const place = { url: "http://127.0.0.1:8080", listeners: [], dataDir: "/data" };

function settings(argv: readonly string[] = []): Config {
  const outcome = loadConfig({ env: {}, argv, readFile: () => "", version });
  if (outcome.status !== "loaded") throw new Error(outcome.status);
  return outcome.config;
}

test("the banner names the signing implementation, and says if callbacks are paused", () => {
  const started = { ...place, groups: [{ groupId: "1", ...up }] };
  expect(toBanner(started, settings())).toMatch(/^ {2}Signing {3}native addon \(secp256k1\)$/m);
  expect(toBanner(started, settings())).not.toContain("Callbacks");
  expect(toBanner(started, settings(["--deliveries", "paused"]))).toMatch(/^ {2}Callbacks paused/m);
});

test.each<[readonly GroupHealth[], string, readonly string[]]>([
  [[{ groupId: "1", ...up }], "is ready.", ["1: chainId 7, signer 0xaa"]],
  [
    [
      { groupId: "1", ...up },
      { groupId: "2", ...down },
    ],
    "is ready, but not yet for group 2: see below.",
    ["1: chainId 7, signer 0xaa", "2: not up yet: http://two: the connection was refused"],
  ],
  [
    [
      { groupId: "1", ...down },
      { groupId: "2", ...down },
    ],
    "has started, and is not ready yet for groups 1, 2: see below.",
    ["1: not up yet: http://two: the connection was refused", "2: not up yet: http://two: the connection was refused"],
  ],
])("the banner says which groups are not up, and why: case %#", (groups, state, rows) => {
  const banner = toBanner({ ...place, groups }, settings());
  expect(banner).toMatch(/^ {2}REST {6}http:\/\/127\.0\.0\.1:8080\/rest\/<operation>$/m);
  expect(banner.split("\n")[0]).toBe(`Stele ${version} ${state}`);
  expect([...banner.matchAll(/^ {2}Group {5}(.*)$/gm)].map(([, row]) => row)).toEqual(rows);
});

test("the banner escapes what an endpoint wrote for a terminal", () => {
  const reason = "http://two: eth_chainId: \u001b[2J\n  Group     1: chainId 7\u009b2J";
  const banner = toBanner({ ...place, groups: [{ groupId: "1", ...down, reason }] }, settings());
  expect(banner).toMatch(/^ {2}Group {5}1: not up yet: .*\\u\{1b\}\[2J\\u\{a\} {2}Group {5}1: chainId 7\\u\{9b\}2J$/m);
});

test("the banner lists every listener with its address", () => {
  const listeners = [
    { name: "HTTP", address: "http://127.0.0.1:8080" },
    { name: "MQTT", address: "mqtt://127.0.0.1:1883" },
  ];
  const banner = toBanner({ ...place, listeners, groups: [] }, settings());
  expect(banner).toMatch(/^ {2}HTTP {6}http:\/\/127\.0\.0\.1:8080\n {2}MQTT {6}mqtt:\/\/127\.0\.0\.1:1883$/m);
});

test("the banner says that MQTT or STOMP is not served, unless the settings turn it off", () => {
  const started = { ...place, groups: [{ groupId: "1", ...up }] };
  const listeners = [{ name: "MQTT", address: "mqtt://127.0.0.1:1883" }];
  expect(toBanner({ ...started, listeners }, settings())).toMatch(/^ {2}MQTT {6}mqtt:\/\/127\.0\.0\.1:1883$/m);
  expect(toBanner(started, settings())).toMatch(/^ {2}MQTT {6}not served: port 1883 .* --mqtt-port/m);
  expect(toBanner(started, settings())).toMatch(/^ {2}STOMP {5}not served: port 61613 .* --stomp-port/m);
  expect(toBanner(started, settings(["--mqtt-port", "off"]))).not.toMatch(/^ {2}MQTT/m);
});

test.each([
  [["--host", "0.0.0.0"], "0.0.0.0"],
  [["--admin-port", "8081", "--admin-host", "10.0.0.1"], "10.0.0.1"],
  [["--host", "::", "--admin-port", "8081", "--admin-host", "10.0.0.1"], ":: or 10.0.0.1"],
])("the banner says that a broker with access off is open, and at which hosts: flags %j", (argv, hosts) => {
  const banner = toBanner({ ...place, groups: [] }, settings([...argv, "--allow-anonymous", "true"]));
  expect(banner).toContain(`  Access    OPEN: whoever reaches ${hosts} may do everything (--allow-anonymous)\n`);
  expect(toBanner({ ...place, groups: [] }, settings(["--allow-anonymous", "true"]))).not.toContain("Access");
});

test("the banner says that the operators' listener is not served if its default port is taken", () => {
  const row = /^ {2}Operators not served: port 8081 cannot be opened; choose one by --admin-port, or off$/m;
  const started = { ...place, groups: [] };
  expect(toBanner(started, settings(["--access", "{}"]))).toMatch(row);
  expect(toBanner(started, settings(["--access", "{}", "--admin-port", "off"]))).not.toContain("Operators");
  const listeners = [{ name: "Operators", address: "http://127.0.0.1:8081" }];
  expect(toBanner({ ...started, listeners }, settings(["--access", "{}"]))).not.toMatch(row);
});
