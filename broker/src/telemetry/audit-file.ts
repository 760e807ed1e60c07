import { type FileHandle, open, stat } from "node:fs/promises";
import { constants } from "node:fs";
import { describeOwner } from "../lib/system/file-owner.ts";

/** Only its owner reads it. A named pipe is not waited for. */
const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;
const mode = 0o600;

/** A file that is appended to. After it was moved away, a new one is begun at its path. */
export class AuditFile {
  readonly #path: string;
  #handle: FileHandle | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** @throws Error that says why it cannot be opened. */
  async open(): Promise<void> {
    await this.#find();
  }

  /** Returns how many bytes were written; none where a pipe is full. */
  async append(bytes: Buffer): Promise<number> {
    const handle = await this.#find();
    try {
      return (await handle.write(bytes)).bytesWritten;
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "EAGAIN") return 0;
      throw error;
    }
  }

  async close(): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    await handle?.close();
  }

  async #find(): Promise<FileHandle> {
    if (this.#handle !== undefined && (await this.#isThere(this.#handle))) return this.#handle;
    await this.close();
    try {
      this.#handle = await open(this.#path, flags, mode);
      return this.#handle;
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`${reason}${describeOwner(this.#path)}`, { cause });
    }
  }

  async #isThere(handle: FileHandle): Promise<boolean> {
    const own = await handle.stat();
    const there = await stat(this.#path).catch(() => undefined);
    return there?.ino === own.ino && there.dev === own.dev;
  }
}
