import { readdirSync, rmSync } from "node:fs";
import { resolve } from "node:path";

/** Files that only a broker creates, except its lock. `stele key` also creates keys.sqlite. An operator who restores a backup creates the other files. */
const madeByBroker = /^(?:chain|store)\.sqlite|^(?:signer|secrets)\.key/;

/** Removes the files that a broker has created in its data folder since the constructor ran. */
export class NewFiles {
  readonly #folder: string;
  readonly #known: ReadonlySet<string>;

  constructor(folder: string) {
    this.#folder = folder;
    this.#known = new Set(readdirSync(folder));
  }

  remove(): void {
    for (const name of readdirSync(this.#folder)) {
      if (!this.#known.has(name) && madeByBroker.test(name)) rmSync(resolve(this.#folder, name), { force: true });
    }
  }
}
