import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { startServer } from "./start-server.ts";
import { loadConfig } from "../config/load-config.ts";
import { startAnvil } from "../ledger/evm/testing/anvil.ts";
import { hasPostgres, startPostgres, titleOf } from "../store/sql/postgres/testing/postgres-server.ts";
import { startRelay } from "../store/sql/postgres/testing/relay.ts";
import { silentLogger } from "../lib/logger.ts";

const shutdownDeadlineMs = 1_000;
/** Below the limits of one statement and of one connection to the database. */
const lateMsMax = 6_000;

describe.runIf(hasPostgres)(titleOf("a node that stops while its database does not answer"), () => {
  const closing: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
  });

  async function startNode() {
    const folder = mkdtempSync(join(tmpdir(), "stele-hung-stop-"));
    closing.push(() => rmSync(folder, { recursive: true }));
    const free = ["--block-base-fee-per-gas", "0", "--gas-price", "0", "--disable-min-priority-fee"];
    const [postgres, anvil] = await Promise.all([startPostgres(), startAnvil(free)]);
    closing.push(() => Promise.all([postgres.remove(), anvil.stop()]));
    const relay = await startRelay(join(postgres.folder, ".s.PGSQL.5432"));
    closing.push(() => relay.close());
    const env = {
      STELE_PORT: "0",
      STELE_MQTT_PORT: "off",
      STELE_STOMP_PORT: "off",
      STELE_ADVERTISED_ADDRESS: "node-a:8080",
      STELE_DATA_DIR: folder,
      STELE_DATABASE_URL: `postgres://stele@127.0.0.1:${relay.port}/postgres`,
      STELE_SHUTDOWN_DEADLINE_MS: String(shutdownDeadlineMs),
      STELE_GROUPS: JSON.stringify([{ id: "1", endpoints: [anvil.url], fees: "zero", pollMs: 50 }]),
    };
    const outcome = loadConfig({ env, argv: [], readFile: () => "", version: "test" });
    if (outcome.status !== "loaded") throw new Error(JSON.stringify(outcome));
    const node = await startServer(outcome.config, { logger: silentLogger, secrets: outcome.secrets });
    return { node, relay };
  }

  it("stops soon after its deadline, and fails with the part that hung", async () => {
    const { node, relay } = await startNode();
    const open = async (): Promise<string> => (await fetch(`${node.url}/rest/open?topic=a`)).text();
    await vi.waitFor(async () => expect(await open()).toBe("true"), { timeout: 20_000, interval: 50 });
    relay.silence();
    const published = fetch(`${node.url}/rest/publish?topic=a&content=x`).catch(() => "cut");
    await expect.poll(async () => (await fetch(`${node.url}/health/live`)).status).toBe(200);
    const since = performance.now();
    await expect(node.stop()).rejects.toThrow(/^not stopped in time: /);
    expect(performance.now() - since).toBeLessThan(shutdownDeadlineMs + lateMsMax);
    await published;
  });
});
