import { readFile, stat } from "node:fs/promises";
import type { Clock } from "../../../ports/clock.ts";

/** Interval between checks of a file for changes. */
const checkIntervalMs = 1000;
/** Longest hosts file or resolv.conf to read, in bytes; a longer one counts as empty. */
const fileBytesMax = 16 * 2 ** 20;

/** The parsed content of a file, parsed again after each change. A file that cannot be read counts as empty. */
export class WatchedFile<T> {
  readonly #path: string;
  readonly #parse: (text: string) => T;
  readonly #clock: Pick<Clock, "monotonic">;
  #current: Promise<T> | undefined;
  #version = "";
  #checkAt = 0;

  constructor(path: string, options: { parse: (text: string) => T; clock: Pick<Clock, "monotonic"> }) {
    this.#path = path;
    this.#parse = options.parse;
    this.#clock = options.clock;
  }

  /** The parsed content: the same object as long as the file does not change. */
  current(): Promise<T> {
    const now = this.#clock.monotonic();
    if (this.#current === undefined || now >= this.#checkAt) {
      this.#checkAt = now + checkIntervalMs;
      this.#current = this.#check(this.#current);
    }
    return this.#current;
  }

  async #check(known: Promise<T> | undefined): Promise<T> {
    const found = await stat(this.#path).catch(() => undefined);
    const version = found === undefined ? "none" : `${found.ino} ${found.mtimeMs} ${found.size}`;
    if (known !== undefined && version === this.#version) return known;
    this.#version = version;
    if (found === undefined || found.size > fileBytesMax) return this.#parse("");
    return this.#parse(await readFile(this.#path, "utf8").catch(() => ""));
  }
}
