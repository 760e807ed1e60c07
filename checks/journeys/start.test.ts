import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

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
