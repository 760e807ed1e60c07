import { statfs } from "node:fs/promises";
import type { Logger } from "../logger.ts";
import type { SystemClock } from "./clock.ts";

/** Wait between two looks, in milliseconds. */
const lookEveryMs = 10_000;
const mebibyte = 2 ** 20;
const remedy = "free some space or enlarge the disk: when it is full, publishes fail and the broker ends";

export interface DiskWatchOptions {
  /** A folder on the disk. */
  readonly folder: string;
  /** Below that much free space the operator is warned. */
  readonly warnBytes: number;
  readonly clock: Pick<SystemClock, "after">;
  readonly logger: Logger;
  /** Free bytes on the disk. @throws the system's error. */
  readonly probe?: ((folder: string) => Promise<number>) | undefined;
}

/** Watches the free space of a disk, and warns before it is full. */
export class DiskWatch {
  readonly #options: DiskWatchOptions;
  readonly #probe: (folder: string) => Promise<number>;
  #cancel: (() => void) | undefined;
  #isStopped = false;
  #freeBytes: number | undefined;
  #isShort = false;

  constructor(options: DiskWatchOptions) {
    this.#options = options;
    this.#probe = options.probe ?? readFreeBytes;
  }

  /** Looks until {@link stop}. Never rejects. */
  async start(): Promise<void> {
    await this.#look();
    if (!this.#isStopped) this.#cancel = this.#options.clock.after(lookEveryMs, () => void this.start());
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
  }

  /** As of the last look; undefined where the system did not say. */
  get freeBytes(): number | undefined {
    return this.#freeBytes;
  }

  /** What health says; undefined while there is enough space. */
  get warning(): string | undefined {
    if (!this.#isShort || this.#freeBytes === undefined) return undefined;
    return `the disk of ${this.#options.folder} has ${Math.floor(this.#freeBytes / mebibyte)} MiB left: ${remedy}`;
  }

  async #look(): Promise<void> {
    const { folder, warnBytes, logger } = this.#options;
    // A system that does not say leaves the operator without this warning, and with all else.
    this.#freeBytes = await this.#probe(folder).catch(() => undefined);
    const wasShort = this.#isShort;
    this.#isShort = this.#freeBytes !== undefined && this.#freeBytes < warnBytes;
    const fields = { folder, freeBytes: this.#freeBytes };
    if (this.#isShort && !wasShort) logger.warn("disk nearly full", { ...fields, warnBytes, remedy });
    if (wasShort && !this.#isShort && this.#freeBytes !== undefined)
      logger.info("disk has enough free space again", fields);
  }
}

/** Without what the system keeps for root. */
async function readFreeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
