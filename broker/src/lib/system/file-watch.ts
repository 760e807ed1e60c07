import type { Stats } from "node:fs";
import { stat } from "node:fs/promises";
import type { SystemClock } from "./clock.ts";

/** Wait between two looks, in milliseconds. Until the next look, the process may confirm writes that are lost. */
const lookEveryMs = 1_000;

/** A file that this process has open is no longer at its path. */
export class FileLostError extends Error {
  override readonly name = "FileLostError";
}

export interface FileWatchOptions {
  /** Files that this process has open until it stops the watch. */
  readonly files: readonly string[];
  readonly clock: Pick<SystemClock, "after">;
  /** Called once, when a file is lost. */
  readonly onLost: (error: FileLostError) => void;
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

  /** Notes which files are at the paths, and looks regularly until {@link stop}. @throws the system's error if a file cannot be found. */
  async start(): Promise<void> {
    for (const file of this.#options.files) this.#known.set(file, await stat(file));
    this.#lookLater();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
  }

  /** The first file that is no longer at its path, as an error; undefined also if the system does not tell. */
  async findLost(): Promise<FileLostError | undefined> {
    for (const [file, { dev, ino }] of this.#known) {
      const there = await stat(file).catch((error: unknown) => (isMissing(error) ? undefined : { dev, ino }));
      if (there?.dev !== dev || there.ino !== ino) return lost(file);
    }
    return undefined;
  }

  #lookLater(): void {
    if (!this.#isStopped) this.#cancel = this.#options.clock.after(lookEveryMs, () => void this.#look());
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    const error = await this.findLost();
    if (error === undefined || this.#isStopped) this.#lookLater();
    else this.#options.onLost(error);
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}

function lost(file: string): FileLostError {
  return new FileLostError(
    `${file} was moved, deleted or replaced while the broker had it open: the broker ends and changes no file. ` +
      "Move the whole data folder back, or restore it from a backup, then start again",
  );
}
