import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { Contexts } from "./contexts.ts";

it("says what to do if the file cannot be read, for example in the home of another user", () => {
  const home = mkdtempSync(join(tmpdir(), "contexts-"));
  try {
    writeFileSync(join(home, ".config"), "");
    expect(() => new Contexts({ env: {}, home }).read()).toThrow(
      /contexts cannot be read \(ENOTDIR.*\): name the broker by --url, or a folder of this user by XDG_CONFIG_HOME$/,
    );
  } finally {
    rmSync(home, { recursive: true });
  }
});
