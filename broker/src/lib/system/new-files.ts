import { lstatSync, readdirSync, rmSync } from "node:fs";
import { resolve } from "node:path";

/** Files that only a broker creates, except its lock. `stele key` also creates keys.sqlite. An operator who restores a backup creates the other files. */
const madeByBroker = /^(?:chain|store)\.sqlite|^(?:signer|secrets)\.key/;
const databases = ["chain.sqlite", "store.sqlite"] as const;

/** Removes the files that a broker has created in its data folder since the constructor ran. */
export class NewFiles {
  readonly #folder: string;
  readonly #known: ReadonlySet<string>;
  /** When each database was last changed, in milliseconds since the epoch. */
  readonly #changedAt: ReadonlyMap<string, number | undefined>;

  constructor(folder: string) {
    this.#folder = folder;
    this.#known = new Set(readdirSync(folder));
    this.#changedAt = new Map(databases.map((name) => [name, this.#findChange(name)]));
  }

  /**
   * Removes nothing if a known database was changed. SQLite may then have copied a part of its log, perhaps up to where the disk was full: without the log, the
   * database would be damaged. All files together are then as after a kill.
   */
  remove(): void {
    if (databases.some((name) => this.#known.has(name) && this.#findChange(name) !== this.#changedAt.get(name))) return;
    for (const name of readdirSync(this.#folder)) {
      if (!this.#known.has(name) && madeByBroker.test(name)) rmSync(resolve(this.#folder, name), { force: true });
    }
  }

  #findChange(name: string): number | undefined {
    return lstatSync(resolve(this.#folder, name), { throwIfNoEntry: false })?.mtimeMs;
  }
}
