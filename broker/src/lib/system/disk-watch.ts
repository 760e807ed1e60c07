import { statfs } from "node:fs/promises";
import type { Logger } from "../logger.ts";
import type { SystemClock } from "./clock.ts";

/** Wait between two readings of the free space, in milliseconds. */
const checkIntervalMs = 10_000;
const mebibyte = 2 ** 20;
const remedy = "free some space or enlarge the disk: when it is full, publishes fail and the broker ends";

export interface DiskWatchOptions {
  /** A folder on the disk. */
  readonly folder: string;
  /** Free space, in bytes, below which the operator gets a warning. */
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

  /** Reads the free space regularly until {@link stop}. Never rejects. */
  async start(): Promise<void> {
    await this.#check();
    if (!this.#isStopped) this.#cancel = this.#options.clock.after(checkIntervalMs, () => void this.start());
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
  }

  /** Free bytes at the last reading; undefined if the system did not tell, and before the first reading. */
  get freeBytes(): number | undefined {
    return this.#freeBytes;
  }

  /** The warning that health shows; undefined while there is enough space, or nobody knows how much. */
  get warning(): string | undefined {
    if (!this.#isShort || this.#freeBytes === undefined) return undefined;
    return `the disk of ${this.#options.folder} has ${Math.floor(this.#freeBytes / mebibyte)} MiB left: ${remedy}`;
  }

  async #check(): Promise<void> {
    const { folder, warnBytes, logger } = this.#options;
    // If the system does not tell the free space, the node only lacks this warning.
    this.#freeBytes = await this.#probe(folder).catch(() => undefined);
    const wasShort = this.#isShort;
    this.#isShort = this.#freeBytes !== undefined && this.#freeBytes < warnBytes;
    const fields = { folder, freeBytes: this.#freeBytes };
    if (this.#isShort && !wasShort) logger.warn("disk nearly full", { ...fields, warnBytes, remedy });
    if (wasShort && !this.#isShort && this.#freeBytes !== undefined)
      logger.info("disk has enough free space again", fields);
  }
}

/** Free bytes, without those that the system reserves for root. */
async function readFreeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
