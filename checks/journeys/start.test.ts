import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { runBroker } from "../harness/broker-process.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

function check(port: string) {
  const args = ["start", "--", "--check-config", "--port", port];
  return spawnSync("npm", args, { cwd: root, encoding: "utf8" });
}

it("npm start passes its flags to the broker, and returns the broker's exit code", () => {
  const good = check("18999");
  expect(good.stdout).toMatch(/18999/);
  expect(good.status).toBe(0);
  const bad = check("x");
  expect(bad.stderr).toMatch(/port/);
  expect(bad.status).toBe(2);
});

it.runIf(process.platform === "linux")("says how many open files it needs where it may not open enough", async () => {
  const { code, stderr } = await runBroker({ shell: 'ulimit -n 400; exec "$@"', args: ["--check-config"] });
  expect(stderr).toMatch(/may open 400 files at once, and needs at least 512/);
  expect(code).toBe(2);
});
