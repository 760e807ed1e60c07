import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { startServer } from "./start-server.ts";
import { loadConfig } from "../config/load-config.ts";
import { silentLogger } from "../lib/logger.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "stele-listeners-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

async function statusOf(address: string | undefined): Promise<number> {
  return (await fetch(`${address}/tail?topic=a`, { method: "HEAD" })).status;
}

it("serves tails on the clients' listener only, if operators have their own listener", async () => {
  const env = {
    STELE_PORT: "0",
    STELE_ADMIN_PORT: "0",
    STELE_MQTT_PORT: "off",
    STELE_STOMP_PORT: "off",
    STELE_DATA_DIR: join(folder, "data"),
  };
  const outcome = loadConfig({ env, argv: [], readFile: () => "", version: "test" });
  if (outcome.status !== "loaded") throw new Error(JSON.stringify(outcome));
  const server = await startServer(outcome.config, { logger: silentLogger, secrets: outcome.secrets });
  const [clients, operators] = server.listeners.map(({ address }) => address);
  expect([await statusOf(clients), await statusOf(operators)]).toEqual([200, 404]);
  await server.stop();
});
