import { pino } from "pino";
import type { LogFields, Logger } from "../lib/logger.ts";
import { standardOutput } from "../lib/system/standard-output.ts";
import { formatLine } from "./format-line.ts";
import { redactCredentials, redactFields } from "./redact.ts";

/** Destination of lines; each ends in a newline. */
export interface LogDestination {
  write(line: string): void;
}

export interface LoggerOptions {
  readonly level: "debug" | "info" | "warn" | "error" | "silent";
  /** `auto`: text if the standard output is a terminal, else JSON. */
  readonly format: "auto" | "json" | "text";
  /** Default: the standard output. */
  readonly destination?: LogDestination;
}

/** A log with one line per entry (text puts an error's stack below it) and no secrets. Writes before the call returns, unless nobody reads the output. */
export function createLogger(options: LoggerOptions): Logger {
  const output = options.destination ?? standardOutput;
  const isText = options.format === "text" || (options.format === "auto" && process.stdout.isTTY);
  const toText = (line: string): string => redactCredentials(isText ? formatLine(line) : line);
  const destination = { write: (line: string) => output.write(toText(line)) };
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

/** The part of a pino logger that we use, so that a child can replace it. */
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
