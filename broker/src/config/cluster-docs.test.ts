import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { loadConfig } from "./load-config.ts";
import { environmentName } from "./setting.ts";
import { settings } from "./settings.ts";

const folder = new URL("../../../docs/cluster/", import.meta.url);
const names = new Set([...Object.keys(settings).map(environmentName), "STELE_CONFIG"]);
const addressOf = "STELE_ADVERTISED_ADDRESS";

function read(file: string): string {
  return readFileSync(new URL(file, folder), "utf8");
}

/** Every `NAME: "value"` of the broker, without quotes, in the order of the file. */
function variablesOf(text: string): readonly (readonly [name: string, value: string])[] {
  return [...text.matchAll(/^ +(STELE_\w+): (["'])(.*)\2$/gm)].map(([, name = "", , value = ""]) => [name, value]);
}

describe("docs/cluster", () => {
  const variables = variablesOf(read("compose.yaml"));
  const shared = Object.fromEntries(variables.filter(([name]) => name !== addressOf));
  const addresses = variables.filter(([name]) => name === addressOf).map(([, value]) => value);

  test("the nodes of compose.yaml differ only in their address, and the balancer knows each", () => {
    expect(addresses).toHaveLength(3);
    expect(new Set(addresses).size).toBe(3);
    expect(variables).toHaveLength(Object.keys(shared).length + addresses.length);
    for (const address of addresses) expect(read("haproxy.cfg")).toContain(` ${address}\n`);
  });

  test("the nodes accept the host name that services inside the network use", () => {
    expect(shared["STELE_ALLOWED_HOSTS"]?.split(",")).toContain("balancer");
    expect(read("compose.yaml")).toMatch(/^ {2}balancer:$/m);
  });

  test.each(addresses)("the broker accepts the environment of %s", (address) => {
    const env = { ...shared, STELE_DATA_DIR: "/data", [addressOf]: address };
    const outcome = loadConfig({ env, argv: [], readFile: () => "", version: "1.2.3" });
    expect(outcome).toMatchObject({ status: "loaded", config: { advertisedAddress: address } });
  });

  test.each(["compose.yaml", "Dockerfile", "haproxy.cfg", "../cluster.md"])("%s names only known variables", (file) => {
    const used = read(file).match(/STELE_[A-Z_]*[A-Z]/g) ?? [];
    expect(used.filter((name) => !names.has(name))).toEqual([]);
  });
});
