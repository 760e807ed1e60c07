import { constants, fstatSync, openSync, writeSync } from "node:fs";
import { isatty } from "node:tty";

/** Maximum number of bytes that wait for a reader; further lines are dropped. */
const waitingBytesMax = 2 ** 20;
/** Pause, in milliseconds, before the next attempt to write the waiting bytes. */
const tryAgainMs = 50;
/** How long a pipe may stay full, in milliseconds, before that counts as trouble. */
const stalledMsMax = 5_000;

/** The system's code for a pipe or a terminal that is full. */
const full = "EAGAIN";

export interface StandardOutputOptions {
  /** Default: 1, the standard output of the process. */
  readonly descriptor?: number;
  readonly monotonic?: () => number;
}

/**
 * Lines for the standard output or the standard error. A line is written before the call returns, unless the output accepts nothing: a pipe that nobody reads,
 * a stopped terminal, or a full disk. Then a bounded number of bytes waits, so that a slow reader does not stop the process.
 */
export class StandardOutput {
  readonly #descriptor: number;
  readonly #monotonic: () => number;
  #opened: number | undefined;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #isTimed = false;
  #failure: { readonly reason: string; readonly since: number } | undefined;
  #lost = 0;

  constructor({ descriptor = 1, monotonic = () => performance.now() }: StandardOutputOptions = {}) {
    this.#descriptor = descriptor;
    this.#monotonic = monotonic;
  }

  /** Never throws. Returns whether the line was written or waits; false if it was dropped. */
  write(line: string): boolean {
    const bytes = Buffer.from(line);
    const rest = this.#waiting.length === 0 ? this.#tryWrite(bytes) : bytes;
    if (rest.length === 0) return true;
    const isBegun = rest.length < bytes.length; // The rest of the line must follow, so that lines stay whole.
    const isTaken = isBegun || this.#waitingBytes + rest.length <= waitingBytesMax;
    if (isTaken) this.#wait(rest);
    else this.#lost += 1;
    return isTaken;
  }

  /** Why lines are late or lost. Undefined while all are written, and while a pipe has been full for less than {@link stalledMsMax} without a lost line. */
  findTrouble(): string | undefined {
    if (this.#failure === undefined) return undefined;
    const { reason, since } = this.#failure;
    const isBrief = reason === full && this.#monotonic() - since < stalledMsMax && this.#lost === 0;
    if (isBrief) return undefined;
    const text = reason === full ? "nobody reads the standard output" : `the standard output fails: ${reason}`;
    return `${text}; ${this.#lost} lines were dropped`;
  }

  /** Writes what waits, as far as the output accepts it now. */
  flush(): void {
    if (this.#waiting.length === 0) return;
    const rest = this.#tryWrite(Buffer.concat(this.#waiting));
    this.#waiting = rest.length > 0 ? [rest] : [];
    this.#waitingBytes = rest.length;
  }

  #wait(bytes: Buffer): void {
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isTimed || this.#waiting.length === 0) return;
    this.#isTimed = true;
    const tryAgain = (): void => {
      this.#isTimed = false;
      this.flush();
      this.#schedule();
    };
    setTimeout(tryAgain, tryAgainMs).unref();
  }

  /** Returns the bytes that were not written. */
  #tryWrite(bytes: Buffer): Buffer {
    let rest = bytes;
    try {
      this.#opened ??= openWithoutWaiting(this.#descriptor);
      while (rest.length > 0) rest = rest.subarray(writeSync(this.#opened, rest));
      this.#failure = undefined;
      this.#lost = 0;
    } catch (error) {
      const reason = error instanceof Error && "code" in error ? String(error.code) : String(error);
      this.#failure = { reason, since: this.#failure?.since ?? this.#monotonic() };
    }
    return rest;
  }
}

/**
 * Opens a pipe or a terminal again in non-blocking mode, so that writes never wait and other users of the descriptor are not affected. A terminal accepts nothing
 * after Ctrl-S, and while the connection to it hangs.
 */
function openWithoutWaiting(descriptor: number): number {
  if (!fstatSync(descriptor).isFIFO() && !isatty(descriptor)) return descriptor;
  try {
    return openSync(`/proc/self/fd/${descriptor}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    return descriptor; // Not Linux, or the pipe or the terminal belongs to another user: writes may wait.
  }
}

/** The outputs of this process. */
export const standardOutput = new StandardOutput();
export const standardError = new StandardOutput({ descriptor: 2 });
