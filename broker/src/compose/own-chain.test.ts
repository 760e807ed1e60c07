import { expect, it } from "vitest";
import { unwritable } from "./own-chain.ts";

it.each([
  ["database is locked", "end the other program that has the file open, then start again"],
  ["database or disk is full", "check the disk and its free space, then start again"],
  ["disk I/O error", "check the disk and its free space, then start again"],
  [
    "database disk image is malformed",
    "run `stele scrub`, which can repair the chain's index, or restore the data folder from a backup, as docs/backup.md#repair says, then start again",
  ],
])("says what to do about a chain that cannot be written: %s", (reason, remedy) => {
  expect(unwritable("/d/chain.sqlite", new Error(reason)).message).toBe(
    `chain /d/chain.sqlite cannot be written: ${reason}; ${remedy}`,
  );
});
