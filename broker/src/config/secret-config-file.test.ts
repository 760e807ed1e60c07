import { expect, test } from "vitest";
import { loadConfig } from "./load-config.ts";

test.each([
  ["a password of the database", { databaseUrl: "postgres://u:hunter2@db/stele" }, true],
  ["a database without its password", { databaseUrl: "postgres://u@db/stele" }, false],
  [
    "an endpoint with a key in its path",
    { groups: [{ id: "1", endpoints: ["https://node.example/v3/abcdef"] }] },
    true,
  ],
  ["an endpoint without a key", { groups: [{ id: "1", endpoints: ["http://node.internal:8545"] }] }, false],
  ["the embedded chain", { groups: [{ id: "1", endpoints: "embedded" }] }, false],
  ["neither database nor key", { port: 1 }, false],
])("reports whether a config file with %s contains a secret", (_, given, holdsSecret) => {
  const groups = [{ id: "1", endpoints: ["http://node.internal:8545"] }];
  const text = JSON.stringify({ host: "10.0.0.1", allowAnonymous: true, groups, ...given });
  const outcome = loadConfig({ env: {}, argv: ["--config", "/etc/stele.json"], readFile: () => text, version: "1" });
  expect(outcome).toMatchObject({ status: "loaded" });
  expect("secretFile" in outcome && outcome.secretFile).toBe(holdsSecret ? "/etc/stele.json" : undefined);
});
