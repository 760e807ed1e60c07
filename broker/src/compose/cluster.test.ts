import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type RunningServer, startServer } from "./start-server.ts";
import { loadConfig } from "../config/load-config.ts";
import { type Anvil, startAnvil } from "../ledger/evm/testing/anvil.ts";
import {
  hasPostgres,
  type PostgresServer,
  startPostgres,
  titleOf,
} from "../store/sql/postgres/testing/postgres-server.ts";
import { createLogger } from "../telemetry/logger.ts";

const password = "hunter2-of-the-database";
const addresses = ["node-a:8080", "node-b:8080"];
/** Size of a page of PostgreSQL. */
const pageBytes = 8_192;
const waiting = { timeout: 20_000, interval: 50 };

describe.runIf(hasPostgres)(titleOf("two nodes with one databaseUrl"), () => {
  const log: string[] = [];
  let folder: string;
  let postgres: PostgresServer;
  let anvil: Anvil;
  let nodes: readonly RunningServer[] = [];

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "stele-compose-"));
    writeFileSync(join(folder, "password"), `${password}\n`, { mode: 0o600 });
    const free = ["--block-base-fee-per-gas", "0", "--gas-price", "0", "--disable-min-priority-fee"];
    [postgres, anvil] = await Promise.all([startPostgres(), startAnvil(free)]);
    nodes = await Promise.all(addresses.map((address) => startNode(address)));
  });
  afterAll(async () => {
    await Promise.all(nodes.map((node) => node.stop()));
    await Promise.all([postgres?.remove(), anvil?.stop()]);
    rmSync(folder, { recursive: true });
  });

  async function startNode(
    address: string,
    { endpoint = anvil.url, signal }: { endpoint?: string; signal?: AbortSignal } = {},
  ): Promise<RunningServer> {
    const env = {
      STELE_PORT: "0",
      STELE_ADVERTISED_ADDRESS: address,
      STELE_DATA_DIR: join(folder, address),
      STELE_DATABASE_URL: postgres.url(),
      STELE_DATABASE_PASSWORD_FILE: join(folder, "password"),
      STELE_GROUPS: JSON.stringify([{ id: "1", endpoints: [endpoint], fees: "zero", pollMs: 50 }]),
    };
    const outcome = loadConfig({ env, argv: [], readFile: () => "", version: "test" });
    if (outcome.status !== "loaded") throw new Error(JSON.stringify(outcome));
    const destination = { write: (line: string) => void log.push(line) };
    const logger = createLogger({ level: "debug", format: "json", destination });
    return startServer(outcome.config, { logger, secrets: outcome.secrets, signal });
  }

  async function textOf(node: number, path: string): Promise<string> {
    return (await fetch(`${nodes[node]?.url}${path}`)).text();
  }

  async function call(node: number, path: string): Promise<unknown> {
    return JSON.parse(await textOf(node, path));
  }

  it("act as one broker: each node sees the changes of the other", async () => {
    await vi.waitFor(async () => expect(await call(0, "/rest/open?topic=a")).toBe(true), waiting);
    await vi.waitFor(async () => expect(await call(1, "/health/ready")).toMatchObject({ status: "ready" }), waiting);
    expect(await call(1, "/rest/exist?topic=a")).toBe(true);
    const published = await call(1, "/rest/publish?topic=a&content=x");
    expect(published).toMatchObject({ status: "SUCCESS" });
    const { eventId } = published as { eventId: string }; // As documented.
    expect(await call(0, `/rest/getEvent?eventId=${eventId}`)).toMatchObject({ eventId });
    const identifier = await call(0, "/rest/subscribe?topic=a&url=http://127.0.0.1:65535/");
    expect(await call(1, `/rest/unSubscribe?subscriptionId=${String(identifier)}`)).toBe(true);
    for (const node of [0, 1]) {
      expect(await call(node, "/admin/listSubscription")).toEqual({
        [addresses[0] ?? ""]: {},
        [addresses[1] ?? ""]: {},
      });
    }
  });

  it("report their state, elect one follower for each chain, and sign with different keys", async () => {
    type Ready = { readonly groups: readonly { readonly role: string; readonly chain: { readonly signer: string } }[] };
    const ready = (await Promise.all([0, 1].map((node) => call(node, "/health/ready")))) as readonly Ready[]; // As documented.
    for (const [index, address] of addresses.entries()) {
      expect(ready[index]).toMatchObject({ node: { address, isMember: true }, groups: [{ subscriptions: 0 }] });
    }
    const groups = ready.flatMap((answer) => answer.groups);
    expect(groups.map(({ role }) => role).toSorted()).toEqual(["follows", "watches"]);
    expect(new Set(groups.map(({ chain }) => chain.signer)).size).toBe(2);
    const metrics = await Promise.all([0, 1].map((node) => textOf(node, "/metrics")));
    for (const text of metrics) expect(text).toContain("stele_node_member 1\n");
    expect(metrics.filter((text) => text.includes('stele_group_follows{group="1"} 1')).length).toBe(1);
  });

  it("no longer list a third node once its start is aborted while it waits for its chain", async () => {
    const ending = new AbortController();
    const started = startNode("node-c:8080", { endpoint: "http://127.0.0.1:1", signal: ending.signal });
    await vi.waitFor(
      async () => expect(await call(0, "/admin/listSubscription")).toHaveProperty(["node-c:8080"]),
      waiting,
    );
    ending.abort();
    await expect(started).rejects.toBe(ending.signal.reason);
    expect(await call(0, "/admin/listSubscription")).not.toHaveProperty(["node-c:8080"]);
  });

  it("never show the database's password", async () => {
    const shown = await Promise.all(
      ["/health/ready", "/metrics", "/admin/listSubscription", "/"].map((path) => textOf(0, path)),
    );
    expect(log.length).toBeGreaterThan(0);
    expect([...log, ...shown].join("\n")).not.toContain(password);
  });

  it("fail if the database reports that its data is damaged", async () => {
    await call(0, "/rest/open?topic=damaged");
    const { eventId } = (await call(0, "/rest/publish?topic=damaged&content=x")) as { eventId: string }; // As documented.
    await damageTable("batches");
    for (const node of [0, 1]) {
      await vi.waitFor(async () => {
        await textOf(node, `/rest/getEvent?eventId=${eventId}`);
        const failure = await Promise.race([nodes[node]?.failure, Promise.resolve(undefined)]);
        expect(failure?.message).toMatch(/is damaged: restore it from a backup.*XX001/);
      }, waiting);
    }
  });

  /** Overwrites the first page of the table. */
  async function damageTable(table: string): Promise<void> {
    const [found] = await postgres.query("select pg_relation_filepath($1) as path", [table]);
    await postgres.halt("fast");
    const file = openSync(join(postgres.folder, "data", String(found?.["path"])), "r+");
    writeSync(file, new Uint8Array(pageBytes).fill(0xff));
    closeSync(file);
    await postgres.resume();
  }
});
