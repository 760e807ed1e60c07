import { type FileHandle, lstat, open } from "node:fs/promises";
import { constants } from "node:fs";
import { describeFileError } from "../lib/system/file-owner.ts";
import { readPlainFileEnd } from "../lib/system/plain-file.ts";

/** These flags follow no link: somebody who may write to the folder could lead the lines elsewhere. With them, opening a named pipe waits for no reader. */
export const auditFileFlags =
  constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK | constants.O_NOFOLLOW;
/** Only the owner may read and write the file. */
export const auditFileMode = 0o600;
const lineEnd = 0x0a;

/**
 * Text to write before the next line of a file. A line end if the file ends within a line, for example after a full disk or a kill. Empty for a pipe, and if
 * this user may not read the file.
 */
export function auditLineStart(path: string): string {
  try {
    const end = readPlainFileEnd(path, 1);
    return end.length === 0 || end[0] === lineEnd ? "" : "\n";
  } catch {
    return "";
  }
}

/** Appends to a file. If somebody moves the file away, begins a new one at the path. */
export class AuditFile {
  readonly #path: string;
  #handle: FileHandle | undefined;
  /** Length of the file after the last write of this process; undefined before the first. */
  #size: number | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** @throws Error that says why the file cannot be opened. */
  async open(): Promise<void> {
    await this.#find();
  }

  /** Begins a new line if another process has left a part of one. Returns how many bytes were written: 0 if the file is a pipe that is full. */
  async append(bytes: Buffer): Promise<number> {
    const handle = await this.#find();
    try {
      const there = await handle.stat();
      let { size } = there;
      if (there.isFile() && size !== this.#size) {
        const lineStart = auditLineStart(this.#path);
        if (lineStart !== "") size += (await handle.write(lineStart)).bytesWritten;
      }
      const { bytesWritten } = await handle.write(bytes);
      this.#size = size + bytesWritten;
      return bytesWritten;
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "EAGAIN") return 0;
      throw error;
    }
  }

  async close(): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    this.#size = undefined;
    await handle?.close();
  }

  async #find(): Promise<FileHandle> {
    if (this.#handle !== undefined && (await this.#isThere(this.#handle))) return this.#handle;
    await this.close();
    try {
      this.#handle = await open(this.#path, auditFileFlags, auditFileMode);
      return this.#handle;
    } catch (cause) {
      throw new Error(describeFileError(this.#path, cause), { cause });
    }
  }

  async #isThere(handle: FileHandle): Promise<boolean> {
    const own = await handle.stat();
    const there = await lstat(this.#path).catch(() => undefined);
    return there?.ino === own.ino && there.dev === own.dev;
  }
}
