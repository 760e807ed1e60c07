import { randomInt } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type RunningServer, startServer } from "./start-server.ts";
import { loadConfig } from "../config/load-config.ts";
import { type Anvil, startAnvil } from "../ledger/evm/testing/anvil.ts";
import { createLogger } from "../telemetry/logger.ts";
import { runVerify } from "../verify/run-verify.ts";

// The first account of every anvil, with a balance.
const privateKey = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
const signer = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const waiting = { timeout: 60_000, interval: 100 };

let folder: string;
let log: string[] = [];
let server: RunningServer | undefined;
let anvils: Anvil[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "stele-compose-"));
  log = [];
});
afterEach(async () => {
  await server?.stop();
  await Promise.all(anvils.map((anvil) => anvil.stop()));
  server = undefined;
  anvils = [];
  rmSync(folder, { recursive: true });
});

async function start(groups: readonly unknown[], env: Readonly<Record<string, string>> = {}): Promise<RunningServer> {
  const outcome = loadConfig({
    env: { STELE_PORT: "0", STELE_DATA_DIR: join(folder, "data"), STELE_GROUPS: JSON.stringify(groups), ...env },
    argv: [],
    readFile: () => "",
    version: "test",
  });
  if (outcome.status !== "loaded") throw new Error(JSON.stringify(outcome));
  const logger = createLogger({
    level: "debug",
    format: "json",
    destination: { write: (line) => void log.push(line) },
  });
  server = await startServer(outcome.config, { logger, secrets: outcome.secrets });
  return server;
}

async function anvilOn(port: number): Promise<void> {
  anvils.push(await startAnvil(["--port", String(port)]));
}

/** A port below the range from which systems assign ports, so that it stays free until the test uses it. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(17_000, 20_000);
    const isFree = await new Promise((resolve) => {
      const probe = createServer().once("error", () => resolve(false));
      probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
    });
    if (isFree) return port;
  }
}

async function call(path: string): Promise<unknown> {
  return (await fetch(`${server?.url}${path}`)).json();
}

async function publish(groupId: string): Promise<unknown> {
  return call(`/rest/publish?topic=a&content=x&groupId=${groupId}`);
}

async function verify(groupId: string, words: readonly string[] = []) {
  const registry = server?.health().find((group) => group.groupId === groupId)?.chain?.["registry"];
  const common = ["--topic", "a", "--broker", server?.url ?? "", "--group", groupId, "--registry", String(registry)];
  return runVerify([...common, ...words], { env: {} });
}

/** Checks that the topic of each group can be verified against its own chain only. */
async function verifyGroups(rpc: string): Promise<void> {
  const other = /serves another chain than group [12] \(chain /;
  expect(await verify("1")).toMatchObject({ exitCode: 0 });
  expect(await verify("2", ["--rpc", rpc])).toMatchObject({ exitCode: 0 });
  expect(await verify("1", ["--rpc", rpc])).toMatchObject({ exitCode: 2, problem: expect.stringMatching(other) });
  expect(await verify("2")).toMatchObject({ exitCode: 2, problem: expect.stringMatching(other) });
}

it("a broker fails, and names the remedy, when the file of keys is damaged while the broker runs", async () => {
  const { failure } = await start([{ id: "1", endpoints: "embedded" }], { STELE_ACCESS: "{}" });
  const keys = join(folder, "data", "keys.sqlite");
  writeFileSync(keys, readFileSync(keys).fill(0xff));
  expect((await failure).message).toMatch(/keys\.sqlite is damaged: restore it from a backup/);
  await expect(server?.stop()).rejects.toThrow();
  server = undefined;
});

it("a broker pauses deliveries if a restore to its data folder ends after the start has begun", async () => {
  const starting = start([{ id: "1", endpoints: "embedded" }]);
  mkdirSync(join(folder, "data"));
  writeFileSync(join(folder, "data", "restored.json"), "{}");
  const { url, config } = await starting;
  expect(config.deliveries).toBe("paused");
  const health = await (await fetch(`${url}/health/ready`)).json();
  expect(health).toMatchObject({ groups: [{ warning: expect.stringContaining("paused") }] });
});

it("stop rejects with LostFileError if the data folder was moved, even if something else failed first", async () => {
  const { failure } = await start([{ id: "1", endpoints: "embedded" }], { STELE_ACCESS: "{}" });
  const keys = join(folder, "data", "keys.sqlite");
  writeFileSync(keys, readFileSync(keys).fill(0xff));
  expect((await failure).message).toMatch(/keys\.sqlite is damaged/);
  renameSync(join(folder, "data"), join(folder, "away"));
  await expect(server?.stop()).rejects.toMatchObject({
    name: "LostFileError",
    cause: expect.objectContaining({ message: expect.stringMatching(/keys|database/) }),
  });
  server = undefined;
});

it("a broker whose data folder was moved fails with LostFileError, even if writing a block failed first", async () => {
  const groups = [{ id: "1", endpoints: "embedded" }];
  await (await start(groups)).stop();
  const { failure } = await start(groups, { STELE_SHUTDOWN_DEADLINE_MS: "1000" });
  renameSync(join(folder, "data"), join(folder, "away"));
  const opened = call("/rest/open?topic=a").catch(() => {}); // Makes this broker write its first block. The stop cuts it off.
  expect(await failure).toMatchObject({ name: "LostFileError" });
  await expect(server?.stop()).rejects.toMatchObject({ name: "LostFileError" });
  server = undefined;
  await opened;
});

describe("groups", () => {
  it("with a dead endpoint do not stop others, come up by themselves, and survive an outage", async () => {
    const port = await freePort();
    const endpoints = [`http://127.0.0.1:${port}`, `ws://bob:hunter2x@127.0.0.1:${port}/keykeykey`];
    const chain = { id: "2", endpoints, signer: { privateKeyEnv: "STELE_ORG_KEY" }, pollMs: 50 };
    await start([{ id: "1", endpoints: "embedded" }, chain], { STELE_ORG_KEY: privateKey });
    expect(await call("/rest/open?topic=a")).toBe(true);
    expect(await call("/rest/open?topic=a&groupId=2")).toMatchObject({
      code: 200205,
      message: expect.stringContaining("group 2 is not up: "),
    });
    expect((await fetch(`${server?.url}/health/ready?groupId=2`)).status).toBe(503);

    await anvilOn(port);
    await vi.waitFor(async () => expect(await call("/rest/open?topic=a&groupId=2")).toBe(true), waiting);
    expect(await publish("1")).toMatchObject({ status: "SUCCESS" });
    expect(await publish("2")).toMatchObject({ status: "SUCCESS", eventId: expect.stringContaining("-1-") });
    expect(await call("/health/ready")).toMatchObject({ status: "ready", groups: [{ ready: true }, { ready: true }] });
    await verifyGroups(`http://127.0.0.1:${port}`);
    const metrics = await (await fetch(`${server?.url}/metrics`)).text();
    expect(metrics).toContain('stele_group_up{group="2"} 1');
    expect(metrics).toContain('stele_group_lag_blocks{group="2"} 0');

    await anvils.pop()?.stop();
    await vi.waitFor(async () => expect(await publish("2")).toMatchObject({ code: 200205 }), waiting);
    expect(await publish("1")).toMatchObject({ status: "SUCCESS" });
    expect(await call("/rest/state?topic=a&groupId=2")).toMatchObject({ sequenceNumber: 1 });
    // Another chain on the same port does not count as the group's.
    await anvilOn(port);
    await vi.waitFor(async () => {
      const { groups } = (await call("/health/ready")) as { groups: { reason?: string }[] }; // As documented.
      expect(groups[1]?.reason).toContain("serves another chain with the same id 31337");
    }, waiting);
    const said = log.join("");
    for (const secret of ["hunter2x", "keykeykey", privateKey.slice(2)]) expect(said).not.toContain(secret);
  }, 180_000);

  it("remember their registry after a restart, log it, and read the key from a file", async () => {
    const port = await freePort();
    await anvilOn(port);
    const keyFile = join(folder, "key");
    writeFileSync(keyFile, `${privateKey}\n`, { mode: 0o644 });
    const group = { id: "1", endpoints: [`ws://127.0.0.1:${port}`], signer: { privateKeyFile: keyFile } };
    await start([group]);
    expect(await call("/rest/open?topic=a")).toBe(true);
    const registryOf = (): unknown =>
      log.map((line) => JSON.parse(line) as Record<string, unknown>).find(({ message }) => message === "group ready"); // Our own lines.
    const first = registryOf();
    expect(first).toMatchObject({ groupId: "1", chainId: 31_337, signer, registry: expect.stringMatching(/^0x/) });
    expect(log.join("")).toContain("secret file is open to other users");
    await server?.stop();
    log = [];
    await start([{ ...group, registry: "deploy" }]);
    expect(registryOf()).toMatchObject({ registry: (first as { registry: string }).registry }); // Checked above.
    expect(await call("/rest/state?topic=a")).toMatchObject({ topicName: "a" });
  });

  it("with a missing key file are refused at the start", async () => {
    const group = { id: "1", endpoints: ["http://127.0.0.1:1"], signer: { privateKeyFile: join(folder, "none") } };
    await expect(start([group])).rejects.toThrow(/none does not exist; it must contain a secret/);
  });
});
