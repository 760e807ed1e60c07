import type { Logger } from "../lib/logger.ts";
import { pause } from "../lib/pause.ts";
import { toEscapedJson } from "../lib/printable.ts";
import { ReportedTrouble } from "../lib/reported-trouble.ts";
import type { AuditLine, AuditLog } from "../ports/audit-log.ts";
import type { Clock } from "../ports/clock.ts";
import type { StandardOutput } from "../lib/system/standard-output.ts";
import { AuditFile } from "./audit-file.ts";
import { redactCredentials } from "./redact.ts";

/** Bytes of audit lines that may wait for the disk; the log drops further lines, and counts them. */
const waitingBytesMax = 2 ** 20;
/** One write of the audit log takes no further line once it has this many bytes. */
const writeBytesMax = 64 * 1024;
/** Pause before a failed write is repeated, in milliseconds. */
const tryAgainMs = 1_000;

/** An audit log with a lifecycle. */
export interface OpenAuditLog extends AuditLog {
  /** @throws Error that says why the log cannot be opened. */
  start(): Promise<void>;
  /** Writes the waiting lines, for at most `graceMs`. Logs how many lines are lost. */
  stop(graceMs: number): Promise<void>;
}

export interface AuditLogOptions {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A line as JSON, without credentials. A terminal may show it, among the lines of the broker's log. */
export function formatAuditLine({ time, ...fields }: AuditLine): string {
  const json = JSON.stringify({ time: new Date(time).toISOString(), ...fields });
  return redactCredentials(`${toEscapedJson(json)}\n`);
}

/** Appends lines to a file, several at a time. `write` never waits for the disk; the lines that wait for it are bounded. */
export class FileAuditLog implements OpenAuditLog {
  readonly #options: AuditLogOptions;
  readonly #path: string;
  readonly #file: AuditFile;
  readonly #trouble: ReportedTrouble;
  readonly #stopping = new AbortController();
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #lost = 0;
  #running: Promise<void> | undefined;

  constructor(path: string, options: AuditLogOptions) {
    this.#options = options;
    this.#path = path;
    this.#file = new AuditFile(path);
    this.#trouble = new ReportedTrouble(
      options.logger,
      "audit log cannot be written",
      "audit log can be written again",
    );
  }

  async start(): Promise<void> {
    try {
      await this.#file.open();
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`The audit log ${this.#path} cannot be opened: ${reason}`, { cause });
    }
  }

  write(line: AuditLine): void {
    const bytes = Buffer.from(formatAuditLine(line));
    if (this.#waitingBytes + bytes.length > waitingBytesMax) {
      this.#lost += 1;
      return;
    }
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    this.#running ??= this.#run().finally(() => (this.#running = undefined));
  }

  findTrouble(): string | undefined {
    const { reason } = this.#trouble;
    if (reason === undefined) return undefined;
    return `the audit log cannot be written: ${reason}; ${this.#lost} lines were dropped`;
  }

  async stop(graceMs: number): Promise<void> {
    const cancel = this.#options.clock.after(graceMs, () => this.#stopping.abort());
    await this.#running;
    cancel();
    const lines = this.#lost + linesIn(Buffer.concat(this.#waiting));
    if (lines > 0) this.#options.logger.error("audit lines lost at the stop", { auditLog: this.#path, lines });
    await this.#file.close();
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (this.#waiting.length > 0 && !signal.aborted) {
      if (await this.#writeSome()) continue;
      await pause(this.#options.clock, tryAgainMs, signal);
    }
  }

  /** Returns whether something was written. */
  async #writeSome(): Promise<boolean> {
    const bytes = this.#takeSome();
    let written = 0;
    try {
      written = await this.#file.append(bytes);
      if (written === 0) this.#trouble.failed(new Error("nobody reads the pipe"));
    } catch (error) {
      this.#trouble.failed(error);
    }
    if (written < bytes.length) this.#waiting.unshift(bytes.subarray(written));
    this.#waitingBytes -= written;
    if (written > 0) this.#recover();
    return written > 0;
  }

  #takeSome(): Buffer {
    let count = 0;
    for (let bytes = 0; count < this.#waiting.length && bytes < writeBytesMax; count += 1) {
      bytes += this.#waiting[count]?.length ?? 0;
    }
    return Buffer.concat(this.#waiting.splice(0, count));
  }

  /** Notes in the log itself how many lines are missing. */
  #recover(): void {
    this.#trouble.done();
    const count = this.#lost;
    this.#lost = 0;
    if (count > 0) this.write(toLeftOut(count, this.#options.clock.now()));
  }
}

function linesIn(bytes: Buffer): number {
  return bytes.toString("latin1").split("\n").length - 1;
}

/** Writes audit lines to the standard output, among the lines of the broker's log. `stop` does not wait for lines that the output still holds. */
export class OutputAuditLog implements OpenAuditLog {
  readonly #output: Pick<StandardOutput, "write" | "findTrouble">;
  #lost = 0;

  constructor(output: Pick<StandardOutput, "write" | "findTrouble">) {
    this.#output = output;
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {}

  write(line: AuditLine): void {
    if (this.#lost > 0 && this.#output.write(formatAuditLine(toLeftOut(this.#lost, line.time)))) this.#lost = 0;
    if (!this.#output.write(formatAuditLine(line))) this.#lost += 1;
  }

  findTrouble(): string | undefined {
    const trouble = this.#output.findTrouble();
    return trouble && `the audit log cannot be written: ${trouble}`;
  }
}

function toLeftOut(count: number, time: number): AuditLine {
  return { time, action: "audit", outcome: "left out", count, reason: "the audit log could not be written" };
}
