import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { mainFile } from "../harness/broker-process.ts";
import { findFreePort } from "../harness/free-port.ts";
import { createTempFolder } from "../harness/temp-folder.ts";

const page = readFileSync(new URL("../../docs/access.md", import.meta.url), "utf8");
const [, marked = ""] = /<!-- access:begin -->\n```sh\n([\s\S]*?)```\n<!-- access:end -->/.exec(page) ?? [];
const commands = marked.trim().split("\n");
const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());

/** Runs the page's commands in one shell, and ends the broker that they start. */
async function run(lines: readonly string[], env: Readonly<Record<string, string>>): Promise<string> {
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
  expect(commands).toHaveLength(10);
  const port = await findFreePort();
  const lines = commands.map((line) => line.replaceAll(":8080", `:${port}`));
  const again = lines[8] ?? "";
  const env = {
    STELE_PORT: String(port),
    STELE_ADMIN_PORT: "0",
    STELE_MQTT_PORT: "off",
    STELE_STOMP_PORT: "off",
    STELE_DATA_DIR: "data",
  };
  const output = await run([...lines, `until ${again} | grep -o '"code":100701'; do :; done`], env);
  expect(output).toContain('{"status":"ready"}');
  expect(output).toMatch(/"topic":"acme\/orders","eventId":"[^"]+","status":"SUCCESS"/);
  expect(output).toContain('"code":100702');
  expect(output).toMatch(/revoked [0-9a-f]{16}/);
  expect(output).toContain('"code":100701');
});
