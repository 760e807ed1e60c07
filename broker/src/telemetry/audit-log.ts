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

/** A line, or the rest of one, that waits for the disk. */
interface WaitingLine {
  readonly bytes: Buffer;
  /** Number of dropped lines that this line reports. */
  readonly reported: number;
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
  readonly #waiting: WaitingLine[] = [];
  #waitingBytes = 0;
  /** Number of dropped lines that no written line has reported. */
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
    if (!this.#add(line)) this.#lost += 1;
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
    const lines = this.#lost + this.#waiting.filter(({ reported }) => reported === 0).length;
    logLost(this.#options.logger, this.#path, lines);
    await this.#file.close();
  }

  /** Returns whether there is room for the line. */
  #add(line: AuditLine, reported = 0): boolean {
    const bytes = Buffer.from(formatAuditLine(line));
    if (this.#waitingBytes + bytes.length > waitingBytesMax) return false;
    this.#waiting.push({ bytes, reported });
    this.#waitingBytes += bytes.length;
    this.#running ??= this.#run().finally(() => (this.#running = undefined));
    return true;
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
    let written = 0;
    try {
      written = await this.#file.append(this.#firstBytes());
      if (written === 0) this.#trouble.failed(new Error("nobody reads the pipe"));
    } catch (error) {
      this.#trouble.failed(error);
    }
    this.#remove(written);
    if (written > 0) this.#recover();
    return written > 0;
  }

  #firstBytes(): Buffer {
    let count = 0;
    for (let bytes = 0; count < this.#waiting.length && bytes < writeBytesMax; count += 1) {
      bytes += this.#waiting[count]?.bytes.length ?? 0;
    }
    return Buffer.concat(this.#waiting.slice(0, count).map(({ bytes }) => bytes));
  }

  /** Removes the bytes that were written: whole lines, and the beginning of one. */
  #remove(written: number): void {
    this.#waitingBytes -= written;
    let [count, left] = [0, written];
    for (const { bytes, reported } of this.#waiting) {
      if (bytes.length > left) break;
      left -= bytes.length;
      count += 1;
      this.#lost -= reported;
    }
    this.#waiting.splice(0, count);
    const [begun] = this.#waiting;
    if (begun !== undefined && left > 0) this.#waiting[0] = { ...begun, bytes: begun.bytes.subarray(left) };
  }

  /** Notes in the log itself how many lines are missing. They count as lost until the note is written. */
  #recover(): void {
    this.#trouble.done();
    if (this.#lost === 0 || this.#waiting.some(({ reported }) => reported > 0)) return;
    this.#add(toLeftOut(this.#lost, this.#options.clock.now()), this.#lost);
  }
}

/** Writes audit lines to the standard output, among the lines of the broker's log. `stop` neither waits for nor counts lines that the output still holds. */
export class OutputAuditLog implements OpenAuditLog {
  readonly #output: Pick<StandardOutput, "write" | "findTrouble">;
  readonly #logger: Logger;
  #lost = 0;

  constructor(output: Pick<StandardOutput, "write" | "findTrouble">, { logger }: Pick<AuditLogOptions, "logger">) {
    this.#output = output;
    this.#logger = logger;
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {
    logLost(this.#logger, "stdout", this.#lost);
  }

  write(line: AuditLine): void {
    if (this.#lost > 0 && this.#output.write(formatAuditLine(toLeftOut(this.#lost, line.time)))) this.#lost = 0;
    if (!this.#output.write(formatAuditLine(line))) this.#lost += 1;
  }

  findTrouble(): string | undefined {
    const trouble = this.#output.findTrouble();
    return trouble && `the audit log cannot be written: ${trouble}`;
  }
}

function logLost(logger: Logger, auditLog: string, lines: number): void {
  if (lines > 0) logger.error("audit lines lost at the stop", { auditLog, lines });
}

function toLeftOut(count: number, time: number): AuditLine {
  return { time, action: "audit", outcome: "left out", count, reason: "the audit log could not be written" };
}
