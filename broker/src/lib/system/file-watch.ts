import type { Stats } from "node:fs";
import { stat } from "node:fs/promises";
import type { SystemClock } from "./clock.ts";

/** Wait between two looks, in milliseconds. Until the next look, the process may confirm writes that are lost. */
const lookEveryMs = 1_000;

export interface FileWatchOptions {
  /** Files that this process has open until it stops the watch. */
  readonly files: readonly string[];
  readonly clock: Pick<SystemClock, "after">;
  /** Called once, with the first file that is no longer at its path. */
  readonly onLost: (file: string) => void;
}

/**
 * Watches whether open files are still at their paths. Writing to a deleted file succeeds, and the system discards the file when the process ends. If
 * another file has taken the path, SQLite deletes that file's log when it closes the deleted one, because it finds the log by the path.
 */
export class FileWatch {
  readonly #options: FileWatchOptions;
  readonly #known = new Map<string, Pick<Stats, "dev" | "ino">>();
  #cancel: (() => void) | undefined;
  #isStopped = false;

  constructor(options: FileWatchOptions) {
    this.#options = options;
  }

  /** Notes which files are at the paths, and looks regularly until {@link stop}. Does not watch a path without a file. Never rejects. */
  async start(): Promise<void> {
    for (const file of this.#options.files) {
      const there = await stat(file).catch(() => undefined);
      if (there !== undefined) this.#known.set(file, there);
    }
    this.#lookLater();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
  }

  /** The first file that is no longer at its path; undefined also if the system does not tell. */
  async findLost(): Promise<string | undefined> {
    for (const [file, { dev, ino }] of this.#known) {
      const there = await stat(file).catch((error: unknown) => (isMissing(error) ? undefined : { dev, ino }));
      if (there?.dev !== dev || there.ino !== ino) return file;
    }
    return undefined;
  }

  #lookLater(): void {
    if (!this.#isStopped) this.#cancel = this.#options.clock.after(lookEveryMs, () => void this.#look());
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    const file = await this.findLost();
    if (file === undefined || this.#isStopped) this.#lookLater();
    else this.#options.onLost(file);
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}
