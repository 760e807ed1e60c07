import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { mainFile, runBroker, startBroker } from "../harness/broker-process.ts";
import { findFreePort } from "../harness/free-port.ts";
import { createTempFolder } from "../harness/temp-folder.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const page = readFileSync(new URL("../../docs/access.md", import.meta.url), "utf8");

/** The commands between the markers of docs/access.md with this name. */
function commandsOf(mark: string): readonly string[] {
  const block = new RegExp(`<!-- ${mark}:begin -->\\n\`\`\`sh\\n([^]*?)\`\`\`\\n<!-- ${mark}:end -->`);
  return (block.exec(page)?.[1] ?? "").trim().split("\n");
}

/** Runs commands in one shell, in a fresh folder and at free ports. Then stops the broker that the commands started. Returns all output. */
async function run(commands: readonly string[]): Promise<string> {
  using folder = createTempFolder();
  const [port, adminPort] = [await findFreePort(), await findFreePort()];
  const lines = commands.map((line) => line.replaceAll(":8080", `:${port}`).replaceAll(":8081", `:${adminPort}`));
  const env = {
    STELE_PORT: String(port),
    STELE_ADMIN_PORT: String(adminPort),
    STELE_MQTT_PORT: "off",
    STELE_STOMP_PORT: "off",
    STELE_DATA_DIR: "data",
  };
  const bin = join(folder.path, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "stele"), `#!/bin/sh\nexec '${process.execPath}' '${mainFile}' "$@"\n`, { mode: 0o755 });
  const script = `set -e\ntrap 'kill $!; wait $! || true' EXIT\n${lines.map((line) => `${line}\necho`).join("\n")}\n`;
  const shell = spawn("bash", ["-c", script], {
    cwd: folder.path,
    env: { ...process.env, ...env, PATH: `${bin}:${process.env["PATH"]}` },
  });
  let output = "";
  shell.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  shell.stderr.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  await new Promise((resolve) => shell.once("close", resolve));
  return output;
}

it("docs/access.md leads from nothing to two organisations with a key each in ten commands", async () => {
  const commands = commandsOf("access");
  expect(commands).toHaveLength(10);
  const again = commands[8] ?? "";
  const output = await run([...commands, `until ${again} | grep -o '"code":100701'; do :; done`]);
  expect(output).toContain('{"status":"ready"}');
  expect(output).toMatch(/"topic":"orders","eventId":"[^"]+","status":"SUCCESS"/);
  expect(output).toMatch(/"status":"SUCCESS"\}\nfalse\ntrue\n/);
  expect(output).toMatch(/revoked [0-9a-f]{16}/);
  expect(output).toContain('"code":100701');
});

it("stele verify uses the key of --key-file, of STELE_KEY or of a context, like every other command", async () => {
  const admin = "--admin-url http://127.0.0.1:8081";
  const verify = `stele verify $(cat id) ${admin} --known-registries known.json`;
  const output = await run([
    `echo '{"access": {}}' > stele.json`,
    "stele key create --config stele.json --principal auditor --role admin > auditor.key",
    "stele --config stele.json > stele.log 2> stele.err &",
    "curl --retry 20 --retry-connrefused -s http://127.0.0.1:8080/health/ready",
    "export STELE_URL=http://127.0.0.1:8080 XDG_CONFIG_HOME=$PWD",
    "stele topics open orders --key-file auditor.key",
    "STELE_KEY=$(cat auditor.key) stele pub orders hello -o json | grep -o '[0-9a-f]\\{8\\}-[0-9]*-[0-9]*' | head -1 > id",
    `${verify} --remember || echo "exit code $?"`,
    `${verify} --remember --key-file auditor.key`,
    `STELE_KEY=$(cat auditor.key) ${verify} -o ndjson`,
    "unset STELE_URL",
    `cat auditor.key | stele context add mine --url http://127.0.0.1:8080 ${admin} --key`,
    "stele verify --topic orders --context mine --known-registries known.json",
  ]);
  expect(output).toMatch(/stele verify: the broker refuses: 100701 [^\n]*\nexit code 2\n/);
  expect(output.match(/^verified/gm)).toHaveLength(2);
  expect(output).toContain('"status":"verified"');
});

it("the commands of docs/access.md set up a token instead of a key", async () => {
  const output = await run(commandsOf("token"));
  expect(output).toMatch(/"topic":"orders","eventId":"[^"]+","status":"SUCCESS"/);
  expect(output).toContain('"code":100701');
});

it("the commands of docs/access.md set a stored role, which takes effect without a restart and is listed", async () => {
  const output = await run([...commandsOf("role"), "stele role list --config stele.json"]);
  expect(output).toMatch(/set producer\n[^]*\ntrue\n\{"name":"producer","source":"store",/);
  expect(output).toContain('"code":100702');
  const admin = /^role admin = \[\{"effect":"allow",.*\]  \(every broker\)$/m;
  const stored = 'role producer = [{"effect":"allow","actions":["read"],"filter":"${tenant}/#"}]  (store)';
  expect(output).toMatch(admin);
  expect(output.split(stored)).toHaveLength(2); // --check-config shows the role once; after its deletion, `role list` does not.
  expect(output).toMatch(/deleted producer\n\nrole admin[^\n]*\n/);
});

it("the commands of docs/access.md set up a client certificate instead of a key", async () => {
  const output = await run(commandsOf("certificate"));
  expect(output).toMatch(/"topic":"orders","eventId":"[^"]+","status":"SUCCESS"/);
  expect(output).toMatch(/\nrefused without a certificate\n/);
});

it("npm start on all addresses with access off exits with 2, and says in one sentence what to do", () => {
  using folder = createTempFolder();
  const env = { ...process.env, STELE_HOST: "0.0.0.0", STELE_DATA_DIR: join(folder.path, "data") };
  const { status, stderr } = spawnSync("npm", ["start", "--silent"], { cwd: root, env, encoding: "utf8" });
  expect({
    status,
    sentences: stderr
      .trim()
      .split("\n")
      .filter((line) => line.includes("STELE_HOST")),
  }).toEqual({
    status: 2,
    sentences: [expect.stringContaining('configure "access" (docs/access.md)')],
  });
});

it("a broker on all addresses with access off does not start, and says in one sentence what to do", async () => {
  using folder = createTempFolder();
  const { code, stderr, stdout } = await runBroker({
    dataDir: join(folder.path, "data"),
    env: { STELE_HOST: "0.0.0.0" },
  });
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr.trim().split("\n")).toEqual([
    expect.stringMatching(
      /^STELE_HOST is 0\.0\.0\.0, .*configure "access" \(docs\/access\.md\), or set STELE_ALLOW_ANONYMOUS=true to allow that$/,
    ),
  ]);
});

it("with allowAnonymous, each start warns that anybody who reaches the broker may do everything", async () => {
  using folder = createTempFolder();
  const env = { STELE_HOST: "0.0.0.0", STELE_ALLOW_ANONYMOUS: "true", STELE_MQTT_PORT: "off", STELE_STOMP_PORT: "off" };
  for (const level of ["info", "error"]) {
    await using broker = await startBroker({ dataDir: folder.path, env: { ...env, STELE_LOG_LEVEL: level } });
    const stderr = broker.stderr();
    expect(stderr).toContain("OPEN: whoever reaches 0.0.0.0 may do everything (--allow-anonymous)");
    if (level === "info")
      expect(stderr + broker.stdout()).toContain("ANYBODY WHO REACHES THIS BROKER MAY DO EVERYTHING");
  }
});

it("--check-config reports stored roles that it cannot read, and creates no store", async () => {
  using folder = createTempFolder();
  const dataDir = join(folder.path, "data");
  const env = { STELE_ACCESS: '{"roles": {"member": [{"actions": ["read"]}]}}' };
  const check = () => runBroker({ dataDir, env, args: ["--check-config"] });
  const { stdout } = await check();
  expect(stdout).toMatch(/^role member = .*\(config file\)\nrole admin = .*\(every broker\)\n$/m);
  expect(existsSync(dataDir)).toBe(false);
  mkdirSync(dataDir);
  writeFileSync(join(dataDir, "keys.sqlite"), "no database".repeat(1_000));
  expect(await check()).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^roles of the store: not read, .*damaged/m),
  });
});
