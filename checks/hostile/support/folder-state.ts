import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** Every file of a data folder except its lock, with its mode and hash, to detect changes. */
export function stateOf(folder: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    readdirSync(folder)
      .filter((name) => !name.startsWith("lock"))
      .toSorted()
      .map((name) => {
        const file = join(folder, name);
        const mode = (statSync(file).mode & 0o777).toString(8);
        return [name, `${mode} ${createHash("sha256").update(readFileSync(file)).digest("hex")}`];
      }),
  );
}
