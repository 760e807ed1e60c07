import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import { toNpmCommand } from "./npm-command.mjs";

it("starts npm here", () => {
  const { command, args, shell } = toNpmCommand(["--version"]);
  const { status, stdout } = spawnSync(command, args, { shell, encoding: "utf8" });
  expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringMatching(/^\d+\.\d+/) });
});

it("starts npm by a shell on Windows, and quotes paths with blanks", () => {
  expect(toNpmCommand(["pack", "C:\\My files\\stele"], "win32")).toEqual({
    command: 'npm "pack" "C:\\My files\\stele"',
    args: [],
    shell: true,
  });
});
