import { readdirSync, rmSync } from "node:fs";
import { resolve } from "node:path";

/** The files that came into a folder since this was made. */
export class NewFiles {
  readonly #folder: string;
  readonly #known: ReadonlySet<string>;

  constructor(folder: string) {
    this.#folder = folder;
    this.#known = new Set(readdirSync(folder));
  }

  remove(): void {
    for (const name of readdirSync(this.#folder)) {
      if (!this.#known.has(name)) rmSync(resolve(this.#folder, name), { force: true });
    }
  }
}
