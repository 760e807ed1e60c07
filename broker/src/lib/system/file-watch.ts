import { stat } from "node:fs/promises";
import type { SystemClock } from "./clock.ts";
import type { OpenFile } from "./open-file.ts";

/** Wait between two looks, in milliseconds. Until the next look, the process may confirm writes that are lost. */
const lookEveryMs = 1_000;

export interface FileWatchOptions {
  /** Files that this process has open until it stops the watch. */
  readonly files: readonly OpenFile[];
  readonly clock: Pick<SystemClock, "after">;
  /** Called once, with the path of the first file that is no longer there. */
  readonly onLost: (path: string) => void;
}

/** Watches whether open files are still at their paths. Writing to a deleted file succeeds, and the system discards the file when the process ends. */
export class FileWatch {
  readonly #options: FileWatchOptions;
  #cancel: (() => void) | undefined;
  #isStopped = false;

  constructor(options: FileWatchOptions) {
    this.#options = options;
  }

  /** Looks regularly until {@link stop}. */
  start(): void {
    if (!this.#isStopped) this.#cancel = this.#options.clock.after(lookEveryMs, () => void this.#look());
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    const path = await this.#findLost();
    if (path === undefined || this.#isStopped) this.start();
    else this.#options.onLost(path);
  }

  /** Undefined also if the system does not tell. */
  async #findLost(): Promise<string | undefined> {
    for (const { path, dev, ino } of this.#options.files) {
      const there = await stat(path).catch((error: unknown) => (isMissing(error) ? undefined : { dev, ino }));
      if (there?.dev !== dev || there.ino !== ino) return path;
    }
    return undefined;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}
