import { readdirSync, rmSync } from "node:fs";
import { resolve } from "node:path";

/** What a broker makes itself, but its lock. Other files in the folder come from an operator who restores a backup. */
const madeByBroker = /^(?:chain|store)\.sqlite|^(?:signer|secrets)\.key/;

/** The files of a broker that came into its data folder since this was made. */
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
