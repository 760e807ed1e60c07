import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { hasPostgres, titleOf } from "./postgres-server.mjs";

const program = `
  import { startPostgres } from ${JSON.stringify(new URL("postgres-server.mjs", import.meta.url).href)};
  for (let at = 0; at < 2; at += 1) {
    const server = await startPostgres();
    const [{ answer }] = await server.query("select 42 as answer");
    console.log(answer);
    await server.remove();
  }
  process.kill(process.pid, "SIGKILL");
`;

it.runIf(hasPostgres)(titleOf("a killed process leaves nothing of its stopped servers"), () => {
  const folder = mkdtempSync(join(tmpdir(), "postgres-left-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  chmodSync(folder, 0o1777); // PostgreSQL's servers run as another user if this one is root.
  const env = { ...process.env, TMPDIR: folder };
  const { stdout, signal } = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
    env,
    encoding: "utf8",
  });
  expect({ stdout, signal }).toEqual({ stdout: "42\n42\n", signal: "SIGKILL" });
  expect(readdirSync(folder)).toEqual([]);
});
