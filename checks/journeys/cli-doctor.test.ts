import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { findFreePort } from "../harness/free-port.ts";
import { mainFile } from "../harness/broker-process.ts";
import { callStele, runStele } from "../harness/stele-command.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";

interface Finding {
  readonly check: string;
  readonly status: string;
  readonly detail: string;
  readonly advice?: string;
}

const running = useWorld(embeddedWorld, {
  env: { STELE_MQTT_PORT: "0", STELE_STOMP_PORT: "0", STELE_ADMIN_PORT: "0" },
});
const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());

async function examine(args: readonly string[] = [], env: Readonly<Record<string, string>> = {}) {
  const { stdout, code } = await callStele(["doctor", "-o", "json", ...args], {
    env: { STELE_URL: running().broker.url, HOME: folder.path, ...env },
  });
  return { code, findings: JSON.parse(stdout) as readonly Finding[] }; // As docs/cli.md describes.
}

function configOf(name: string, settings: object): string {
  const file = join(folder.path, name);
  writeFileSync(file, JSON.stringify(settings));
  return file;
}

describe("stele doctor", () => {
  it("stele doctor connects to the ports for MQTT and STOMP that the broker names", async () => {
    const { code, findings } = await examine();
    expect(code).toBe(0);
    for (const check of ["port MQTT", "port STOMP"]) {
      expect(findings).toContainEqual({
        check,
        status: "ok",
        detail: expect.stringMatching(/^port \d+ of 127\.0\.0\.1 accepts connections$/),
      });
    }
    expect(findings.map(({ check }) => check)).not.toContain("config");
  });

  it("stele doctor suggests naming the operators' port if the broker's address has no admin API", async () => {
    const { findings } = await examine();
    expect(findings).toContainEqual({
      check: "admin",
      status: "warning",
      detail: "there is no admin API at this address",
      advice: "name the operators' port with --admin-url",
    });
  });

  it("stele doctor reports config, database and disk as ok for a valid config file and environment", async () => {
    const { dataDir } = running();
    const config = configOf("valid.json", { mqttPort: "off", stompPort: "off" });
    const { code, findings } = await examine(["--config", config], { STELE_DATA_DIR: dataDir });
    expect(code).toBe(0);
    expect(findings.slice(0, 3)).toMatchObject([
      { check: "config", status: "ok" },
      { check: "database", status: "ok", detail: `SQLite in ${dataDir}` },
      { check: "disk", status: "ok" },
    ]);
  });

  it("stele doctor examines the broker at the address of the settings, unless --url names another one", async () => {
    const { port } = new URL(running().broker.url);
    const config = configOf("address.json", { host: "0.0.0.0", allowAnonymous: true, port: Number(port) });
    const ok = { check: "address", status: "ok", detail: `http://127.0.0.1:${port} answers` };
    expect((await examine(["--config", config], { STELE_URL: "" })).findings).toContainEqual(ok);
    const other = `http://127.0.0.1:${await findFreePort()}`;
    const { findings } = await examine(["--config", config, "--url", other]);
    expect(findings.find(({ check }) => check === "address")?.detail).toContain(other);
  });

  it("stele doctor examines the broker of the current context, also at the default address and with --config", async () => {
    using home = createTempFolder();
    const env = { STELE_URL: "", HOME: home.path };
    await callStele(["context", "add", "near", "--url", "http://127.0.0.1:8080"], { env });
    await callStele(["context", "use", "near"], { env });
    const config = configOf("other.json", { port: await findFreePort() });
    const { findings } = await examine(["--config", config], env);
    expect(findings.find(({ check }) => check === "address")?.detail).toMatch(/^http:\/\/127\.0\.0\.1:8080 /);
  });

  it("stele doctor examines the operators' port of the settings", async () => {
    const { broker } = running();
    const [, adminPort = ""] = /^ *operators +http:.*:(\d+)/im.exec(broker.stderr()) ?? [];
    const ports = { port: Number(new URL(broker.url).port), adminPort: Number(adminPort) };
    const { findings } = await examine(["--config", configOf("ports.json", ports)], { STELE_URL: "" });
    expect(findings).toContainEqual({ check: "admin", status: "ok", detail: "this caller may use the admin API" });
  });

  it("stele doctor reports an address of the settings that is not a URL, besides its other findings", async () => {
    const config = configOf("host.json", { host: "999.1.1.1", allowAnonymous: true });
    const { code, findings } = await examine(["--config", config], { STELE_URL: "" });
    expect(code).toBe(1);
    expect(findings.map(({ check, status }) => `${check} ${status}`)).toEqual(
      expect.arrayContaining(["config ok", "address failed"]),
    );
  });

  it("stele doctor reports an operators' address of the settings that is not a URL, besides its other findings", async () => {
    const port = Number(new URL(running().broker.url).port);
    const config = configOf("admin.json", { port, adminHost: "999.1.1.1", adminPort: 8081, allowAnonymous: true });
    const { code, findings } = await examine(["--config", config], { STELE_URL: "" });
    expect(code).toBe(1);
    expect(findings).toContainEqual({
      check: "admin address",
      status: "failed",
      detail: "http://999.1.1.1:8081 is not a URL",
      advice: "correct the setting adminHost",
    });
    expect(findings.map(({ check }) => check)).toEqual(expect.arrayContaining(["config", "ready", "tail", "admin"]));
  });

  it.runIf(process.platform === "linux")("stele doctor reads a key from a pipe once", async () => {
    const program = ["bash", "-c", 'exec "$@" --key-file <(echo key)', "bash", process.execPath, mainFile];
    const { port } = new URL(running().broker.url);
    const args = ["doctor", "-o", "json", "--config", configOf("pipe.json", { port: Number(port) })];
    expect(await runStele(args, { program, env: { HOME: folder.path } })).toMatchObject({ code: 0, stderr: "" });
  });

  it.each<[string, object, Readonly<Record<string, string>>, string]>([
    ["a setting that does not exist", { prot: 1 }, {}, "prot"],
    ["a wrong value", { port: "many" }, {}, "port"],
    ["a variable that does not exist", {}, { STELE_PROT: "1" }, "STELE_PROT"],
    ["settings that exclude each other", { host: "0.0.0.0" }, {}, "access"],
  ])("stele doctor reports %s, and says what to do", async (...[, settings, env, text]) => {
    const { code, findings } = await examine(["--config", configOf("wrong.json", settings)], env);
    expect(code).toBe(1);
    expect(findings[0]).toEqual({
      check: "config",
      status: "failed",
      detail: expect.stringContaining(text),
      advice: expect.stringContaining("--check-config"),
    });
  });

  it("stele doctor names a wrong variable of the environment if no config file is given", async () => {
    const { findings } = await examine([], { STELE_PORT: "many" });
    expect(findings[0]).toMatchObject({
      check: "config",
      status: "failed",
      detail: expect.stringContaining("STELE_PORT"),
    });
  });

  it("stele doctor connects to the database that nodes share, and prints no password", async () => {
    await using database = await listen();
    const databaseUrl = `postgres://stele:secret@127.0.0.1:${database.port}/stele`;
    const settings = { databaseUrl, advertisedAddress: "127.0.0.1:8080", ...outsideChain };
    const { findings } = await examine(["--config", configOf("shared.json", settings)]);
    expect(findings).toContainEqual({ check: "database", status: "ok", detail: expect.stringContaining("accepts") });
    expect(JSON.stringify(findings)).not.toContain("secret");
  });

  it("stele doctor reports a database that refuses the connection", async () => {
    const databaseUrl = `postgres://stele:secret@127.0.0.1:${await findFreePort()}/stele`;
    const settings = { databaseUrl, advertisedAddress: "127.0.0.1:8080", ...outsideChain };
    const { code, findings } = await examine(["--config", configOf("away.json", settings)]);
    expect(code).toBe(1);
    expect(findings).toContainEqual({
      check: "database",
      status: "failed",
      detail: expect.stringContaining("the connection was refused"),
      advice: expect.stringContaining("databaseUrl"),
    });
  });
});

/** Nodes that share a database need a chain outside the broker. */
const outsideChain = { groups: [{ id: "1", endpoints: ["http://127.0.0.1:1"] }] };

async function listen() {
  const server = createServer((socket) => socket.destroy());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    port: typeof address === "object" ? address?.port : undefined,
    [Symbol.asyncDispose]: async () => {
      server.close();
      await once(server, "close");
    },
  };
}
