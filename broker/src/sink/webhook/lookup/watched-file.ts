import { readFile, stat } from "node:fs/promises";
import type { Clock } from "../../../ports/clock.ts";

/** A file that changed is read again after at most this. */
const lookEveryMs = 1000;
/** Bytes of a file that is read; a longer one counts as empty. */
const fileBytesMax = 16 * 2 ** 20;

/** What a file says, parsed anew when it has changed. A file that cannot be read counts as empty. */
export class WatchedFile<T> {
  readonly #path: string;
  readonly #parse: (text: string) => T;
  readonly #clock: Pick<Clock, "monotonic">;
  #current: Promise<T> | undefined;
  #version = "";
  #lookAgainAt = 0;

  constructor(path: string, options: { parse: (text: string) => T; clock: Pick<Clock, "monotonic"> }) {
    this.#path = path;
    this.#parse = options.parse;
    this.#clock = options.clock;
  }

  /** The same object for as long as the file stays as it is. */
  current(): Promise<T> {
    const now = this.#clock.monotonic();
    if (this.#current === undefined || now >= this.#lookAgainAt) {
      this.#lookAgainAt = now + lookEveryMs;
      this.#current = this.#look(this.#current);
    }
    return this.#current;
  }

  async #look(known: Promise<T> | undefined): Promise<T> {
    const found = await stat(this.#path).catch(() => undefined);
    const version = found === undefined ? "none" : `${found.ino} ${found.mtimeMs} ${found.size}`;
    if (known !== undefined && version === this.#version) return known;
    this.#version = version;
    if (found === undefined || found.size > fileBytesMax) return this.#parse("");
    return this.#parse(await readFile(this.#path, "utf8").catch(() => ""));
  }
}
