import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { Contexts } from "./contexts.ts";

it("says what to do if the file cannot be read or written, for example in the home of another user", async () => {
  const home = mkdtempSync(join(tmpdir(), "contexts-"));
  try {
    writeFileSync(join(home, ".config"), "");
    const contexts = new Contexts({ env: { HOME: home } });
    expect(() => contexts.read()).toThrow(
      /contexts cannot be read \(ENOTDIR.*\): name the broker by --url, or a folder of this user by XDG_CONFIG_HOME$/,
    );
    await expect(contexts.change((file) => file)).rejects.toThrow(
      /contexts cannot be written \(ENOTDIR.*\): name a folder of this user by HOME or XDG_CONFIG_HOME$/,
    );
  } finally {
    rmSync(home, { recursive: true });
  }
});
