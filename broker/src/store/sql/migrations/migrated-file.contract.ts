import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { temporaryFile } from "../../temporary-file.contract.ts";
import { createSqlStore } from "../sql-store.ts";

let template: Promise<Buffer> | undefined;

/** Like `temporaryFile`, but the file contains an empty store: copying its tables takes half the time of creating them. */
export async function migratedFile(): Promise<string> {
  template ??= createTemplate();
  const file = temporaryFile();
  writeFileSync(file, await template);
  return file;
}

async function createTemplate(): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), "stele-template-"));
  try {
    const file = join(folder, "store.db");
    const store = createSqlStore({ file });
    await store.start();
    await store.stop();
    return readFileSync(file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
