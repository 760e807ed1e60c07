import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Logger } from "../../../lib/logger.ts";
import { alpha, group, history, subscriptionOf } from "../../../ports/store-examples.contract.ts";
import { createPostgresStore } from "./postgres-store.ts";
import { findFreePort } from "./testing/free-port.ts";
import { hasPostgres, type PostgresServer, startPostgres, titleOf } from "./testing/postgres-server.ts";

const password = "hunter2-hunter2";

describe.runIf(hasPostgres)(titleOf("the start of a PostgreSQL store"), () => {
  let server: PostgresServer;
  let port: number;
  beforeAll(async () => {
    port = await findFreePort();
    const settings = ["listen_addresses=127.0.0.1", "ssl=on", "ssl_cert_file=server.crt", "ssl_key_file=server.key"];
    server = await startPostgres({ port, settings, prepareData });
    await server.query(`alter role stele password '${password}'`);
  });
  afterAll(async () => server.remove());

  const remote = (user: string, parameters = "") => `postgres://${user}@127.0.0.1:${port}/postgres?${parameters}`;
  const trusted = () =>
    `sslmode=verify-full&sslrootcert=${encodeURIComponent(join(server.folder, "data", "server.crt"))}`;

  it("creates the tables once when several nodes start at the same time on an empty database", async () => {
    const url = await server.createDatabase();
    const stores = Array.from({ length: 8 }, () => createPostgresStore({ url, connectionsMax: 2 }));
    await Promise.all(stores.map((store) => store.start()));
    await stores[0]?.applyBlocks(group, history);
    for (const store of stores) expect(await store.findTopic(group, alpha)).toMatchObject({ sequence: 8 });
    await stores[0]?.insertSubscription(subscriptionOf(1), 0);
    expect(await stores[7]?.listSubscriptions()).toEqual([subscriptionOf(1)]);
    await Promise.all(stores.map((store) => store.stop()));
  });

  it("refuses a database of a newer version", async () => {
    const url = await server.createDatabase();
    const store = createPostgresStore({ url });
    await store.start();
    await store.stop();
    const client = new Client({ connectionString: url });
    await client.connect();
    await client.query("update schema_version set version = version + 1");
    await client.end();
    await expect(store.start()).rejects.toMatchObject({ fault: "newer" });
  });

  it("refuses calls before start and after stop, and a second start", async () => {
    const store = createPostgresStore({ url: await server.createSchema() });
    await expect(store.findHead(group)).rejects.toThrow("not started");
    await store.stop();
    await store.start();
    await expect(store.start()).rejects.toThrow("started already");
    await store.stop();
    await store.stop();
    await expect(store.findHead(group)).rejects.toThrow("not started");
  });

  it("connects by TLS with a user and a password, under sslmode verify-full, require, prefer and the default", async () => {
    const seen = await startAndLook(remote(`stele:${password}`, trusted()));
    expect(seen).toMatchObject({ error: undefined, tls: true });
    for (const parameters of ["sslmode=require", "sslmode=prefer", ""]) {
      const url = remote(`stele:${password}`, parameters);
      expect(await startAndLook(url)).toMatchObject({ error: undefined, tls: true });
    }
    expect(seen.log).not.toContain(password);
  });

  it.each<[string, () => string | Promise<string>, string]>([
    ["a wrong password", () => remote(`stele:x${password}`, trusted()), "refuses this user"],
    ["no password", () => remote("stele", trusted()), "refuses this user"],
    ["an unknown user", () => remote(`none:${password}`, trusted()), "refuses this user"],
    ["no TLS for a server that requires it", () => remote(`stele:${password}`, "sslmode=disable"), "refuses this user"],
    ["an untrusted certificate", () => remote(`stele:${password}`, "sslmode=verify-full"), "is not trusted"],
    ["an unknown database", () => server.url("none"), "does not exist"],
    ["a database that is not in UTF8", async () => latinDatabase(), "has the encoding LATIN1"],
    ["a user who may not create tables", async () => poorUser(), "denies this user a right"],
  ])("reports %s without the password", async (_, url, message) => {
    const { error, log } = await startAndLook(await url());
    expect(error).toMatchObject({
      name: "StoreError",
      fault: "cannot-open",
      message: expect.stringContaining(message),
    });
    expect(`${log} ${String(error)} ${JSON.stringify(error)} ${String((error as Error).stack)}`).not.toContain(
      password,
    );
  });

  it("waits briefly for a missing server, then names it", async () => {
    const url = `postgres://stele:${password}@127.0.0.1:1/stele`; // No server listens on that port.
    const { error, log } = await startAndLook(url);
    expect(error).toMatchObject({
      name: "StoreError",
      fault: "unavailable",
      message: expect.stringContaining("ECONNREFUSED"),
    });
    expect(`${log} ${String(error)}`).not.toContain(password);
  });

  async function latinDatabase(): Promise<string> {
    await server.query("create database latin template template0 encoding 'LATIN1' locale 'C'");
    return server.url("latin");
  }

  async function poorUser(): Promise<string> {
    await server.query("create role poor login");
    return server.url().replace("//stele@", "//poor@");
  }

  async function startAndLook(url: string): Promise<{ error: unknown; log: string; tls: boolean }> {
    const lines: unknown[] = [];
    const store = createPostgresStore({ url, logger: listLogger(lines), connectionsMax: 1 });
    const error = await store.start().then(
      () => undefined,
      (failure: unknown) => failure,
    );
    const tls = (await countTlsSessions()) === 1;
    await store.stop();
    while ((await countTlsSessions()) > 0) continue; // The server notices a moment later that a connection has ended.
    return { error, log: JSON.stringify(lines), tls };
  }

  async function countTlsSessions(): Promise<number> {
    const [row] = await server.query(
      "select count(*)::int as n from pg_stat_ssl join pg_stat_activity using (pid) where ssl and application_name = 'stele'",
    );
    return Number(row?.["n"]);
  }
});

function listLogger(lines: unknown[]): Logger {
  const note = (message: string, fields?: object) => void lines.push([message, fields]);
  const logger: Logger = { debug: note, info: note, warn: note, error: note, child: () => logger };
  return logger;
}

/** Creates a certificate for this machine, and requires TLS and passwords for network connections. */
function prepareData(data: string): void {
  const [key, certificate, access] = ["server.key", "server.crt", "pg_hba.conf"].map((name) => join(data, name));
  if (key === undefined || certificate === undefined || access === undefined) throw new Error("a name is missing");
  const names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"];
  const args = [
    "req",
    "-x509",
    "-newkey",
    "rsa:2048",
    "-nodes",
    "-days",
    "2",
    "-keyout",
    key,
    "-out",
    certificate,
    ...names,
  ];
  execFileSync("openssl", args, { stdio: "ignore" });
  writeFileSync(access, "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n");
  const { uid, gid } = statSync(data);
  for (const file of [key, certificate, access].filter((name) => existsSync(name))) chownSync(file, uid, gid);
  chmodSync(key, 0o600);
}
