import { describe, expect, test } from "vitest";
import { membershipMsMax } from "../store/sql/postgres/coordination/limits.ts";
import { idleInTransactionMsMax } from "../store/sql/postgres/limits.ts";
import { loadConfig, type LoadOutcome } from "./load-config.ts";

const databaseUrl = "postgres://stele:hunter2@db.internal/stele";
const groups = JSON.stringify([{ id: "1", endpoints: ["http://node.internal:8545"] }]);
const cluster = { STELE_DATABASE_URL: databaseUrl, STELE_GROUPS: groups };

function load(env: Readonly<Record<string, string>>, argv: readonly string[] = []): LoadOutcome {
  return loadConfig({ env: { STELE_ALLOW_ANONYMOUS: "true", ...env }, argv, readFile: () => "", version: "1.2.3" });
}

describe("settings of a node in a cluster", () => {
  test("accepts a database and a host that other machines can reach, with defaults for the rest", () => {
    expect(load({ ...cluster, STELE_HOST: "10.0.0.1" })).toMatchObject({
      status: "loaded",
      config: { databaseUrl, databasePasswordFile: "", databaseConnectionsMax: 10, takeOverAfterMs: 6000 },
    });
  });

  test.each<[string, Readonly<Record<string, string>>, string]>([
    [
      "the default embedded chain",
      { STELE_GROUPS: "" },
      'group "1" cannot be served with STELE_DATABASE_URL, because other nodes cannot reach the embedded chain of this node: name the endpoints of a chain in STELE_GROUPS',
    ],
    [
      "an embedded group",
      { STELE_GROUPS: '[{"id":"1","endpoints":"embedded"}]' },
      'group "1" cannot be served with STELE_DATABASE_URL, because other nodes cannot reach the embedded chain of this node',
    ],
    [
      "coordination none",
      { STELE_COORDINATION: "none" },
      "STELE_COORDINATION is none, but STELE_DATABASE_URL is set: remove one of the two",
    ],
    [
      "port 0 without an advertised address",
      { STELE_PORT: "0" },
      "STELE_ADVERTISED_ADDRESS must be set to host:port, because STELE_PORT is 0 and clients need an address at which they reach this node",
    ],
    [
      "the host 0.0.0.0 without an advertised address",
      { STELE_HOST: "0.0.0.0" },
      "STELE_ADVERTISED_ADDRESS must be set to host:port, because STELE_HOST is 0.0.0.0 and clients need an address at which they reach this node",
    ],
    [
      "the host :: without an advertised address",
      { STELE_HOST: "::" },
      "STELE_ADVERTISED_ADDRESS must be set to host:port, because STELE_HOST is :: and clients need an address at which they reach this node",
    ],
    [
      "two passwords",
      { STELE_DATABASE_PASSWORD_FILE: "/run/secrets/db" },
      "STELE_DATABASE_URL contains a password, and STELE_DATABASE_PASSWORD_FILE is set too: remove one of the two",
    ],
    [
      "a password file without a database",
      { STELE_DATABASE_URL: "", STELE_DATABASE_PASSWORD_FILE: "/run/secrets/db" },
      "STELE_DATABASE_PASSWORD_FILE has no effect without STELE_DATABASE_URL",
    ],
    [
      "a takeover time below the minimum",
      { STELE_TAKE_OVER_AFTER_MS: "1999" },
      "STELE_TAKE_OVER_AFTER_MS: 1999 is not an integer from 2000 to 600000",
    ],
  ])("refuses %s", (_name, env, problem) => {
    expect(load({ ...cluster, ...env })).toEqual({ status: "refused", problems: [problem] });
  });

  test.each([{ STELE_PORT: "0" }, { STELE_HOST: "0.0.0.0" }])("accepts %j with an advertised address", (env) => {
    expect(load({ ...cluster, ...env, STELE_ADVERTISED_ADDRESS: "node-a:8080" }).status).toBe("loaded");
  });

  test("no output contains the password", () => {
    const shown = [
      load(cluster, ["--check-config"]),
      load({ STELE_DATABASE_URL: "postgress://stele:hunter2@db/stele" }),
      load({ STELE_DATABASE_URL: "stele:hunter2@db" }),
      load({ ...cluster, STELE_COORDINATION: "none", STELE_PORT: "0" }),
    ].map((outcome) => JSON.stringify({ ...outcome, config: undefined, secrets: undefined }));
    expect(shown[0]).toContain("postgres://…@db.internal/stele");
    expect(shown.join("\n")).not.toMatch(/hunter2|stele:/);
  });

  test("refuses a takeOverAfterMs below the database's time limit for idle transactions", () => {
    const takeOverAfterMs = idleInTransactionMsMax - 1;
    const outcome = load({ ...cluster, STELE_HOST: "10.0.0.1", STELE_TAKE_OVER_AFTER_MS: `${takeOverAfterMs}` });
    expect(JSON.stringify(outcome)).toContain("STELE_TAKE_OVER_AFTER_MS");
    expect(outcome.status).not.toBe("loaded");
  });

  test("refuses a takeOverAfterMs above the longest membership", () => {
    const takeOverAfterMs = membershipMsMax + 1;
    const outcome = load({ ...cluster, STELE_HOST: "10.0.0.1", STELE_TAKE_OVER_AFTER_MS: `${takeOverAfterMs}` });
    expect(outcome.status).not.toBe("loaded");
  });
});
