import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A path for a store's file, alone in a folder that goes when the test is finished. */
export function temporaryFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "stele-store-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "store.db");
}
