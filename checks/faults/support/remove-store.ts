import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

/** Removes the index of a stopped broker from its data folder. Returns the names of the removed files. */
export function removeStore(dataDir: string): readonly string[] {
  const names = readdirSync(dataDir).filter((name) => name.startsWith("store.sqlite"));
  for (const name of names) rmSync(join(dataDir, name));
  return names;
}
