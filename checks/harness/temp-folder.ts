import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder of one test, removed when the test disposes of it. */
export interface TempFolder extends Disposable {
  readonly path: string;
}

export function createTempFolder(): TempFolder {
  const path = mkdtempSync(join(tmpdir(), "stele-check-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
