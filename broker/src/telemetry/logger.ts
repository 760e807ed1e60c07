import { pino } from "pino";
import type { LogFields, Logger } from "../lib/logger.ts";
import { formatLine } from "./format-line.ts";
import { redactFields } from "./redact.ts";

/** Where lines go; each ends in a newline. */
export interface LogDestination {
  write(line: string): void;
}

export interface LoggerOptions {
  readonly level: "debug" | "info" | "warn" | "error" | "silent";
  /** `auto`: text when the standard output is a terminal, else JSON. */
  readonly format: "auto" | "json" | "text";
  /** The standard output unless given. */
  readonly destination?: LogDestination;
}

/** A log of one line an entry, written before the call returns, without secrets. */
export function createLogger(options: LoggerOptions): Logger {
  const output = options.destination ?? pino.destination({ fd: 1, sync: true });
  const isText = options.format === "text" || (options.format === "auto" && process.stdout.isTTY);
  const destination = isText ? { write: (line: string) => output.write(formatLine(line)) } : output;
  const root = pino(
    {
      level: options.level,
      base: null,
      messageKey: "message",
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (level) => ({ level }), log: redactFields },
    },
    destination,
  );
  return new PinoLogger(root);
}

/** What is used of a pino logger, so that a child can stand in its place. */
type PinoLines = Pick<pino.Logger, "debug" | "info" | "warn" | "error"> & { child(fields: LogFields): PinoLines };

class PinoLogger implements Logger {
  readonly #lines: PinoLines;

  constructor(lines: PinoLines) {
    this.#lines = lines;
  }

  debug(message: string, fields: LogFields = {}): void {
    this.#lines.debug(fields, message);
  }

  info(message: string, fields: LogFields = {}): void {
    this.#lines.info(fields, message);
  }

  warn(message: string, fields: LogFields = {}): void {
    this.#lines.warn(fields, message);
  }

  error(message: string, fields: LogFields = {}): void {
    this.#lines.error(fields, message);
  }

  child(fields: LogFields): Logger {
    return new PinoLogger(this.#lines.child(redactFields(fields)));
  }
}
