import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createLogIns, findLogInProblems } from "./log-ins.ts";
import { loadConfig } from "../config/load-config.ts";
import { silentLogger } from "../lib/logger.ts";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "log-ins-"))));
afterEach(() => rmSync(folder, { recursive: true }));

function configWith(clientSecretFile: string | undefined) {
  const logIn = { name: "acme", clientId: "stele", clientSecretFile, origins: ["https://events.example.org"] };
  const tokens = [{ issuer: "https://id.example", audience: "stele", keys: "https://id.example/keys", logIn }];
  const env = { STELE_ACCESS: JSON.stringify({ tokens }) };
  const outcome = loadConfig({ env, argv: [], readFile: () => "", version: "1" });
  if (outcome.status !== "loaded") throw new Error(JSON.stringify(outcome));
  return outcome.config;
}

it("reports a client secret that is missing or empty, at --check-config and at the start", () => {
  const file = join(folder, "secret");
  const config = configWith(file);
  expect(findLogInProblems(config)).toEqual([`access.tokens: ${file} does not exist; it must contain a secret.`]);
  writeFileSync(file, "\n", { mode: 0o600 });
  expect(findLogInProblems(config)).toEqual([
    `access.tokens: ${file} is empty; it must contain the secret of a client.`,
  ]);
  expect(() => createLogIns(config, silentLogger)).toThrow(file);
  writeFileSync(file, "x\n", { mode: 0o600 });
  expect(findLogInProblems(config)).toEqual([]);
});

it("needs no secret for a public client, and returns undefined without log-ins", () => {
  expect(createLogIns(configWith(undefined), silentLogger)).toMatchObject([{ name: "acme" }]);
  expect(createLogIns({ access: undefined }, silentLogger)).toBeUndefined();
});
