import { type OutputFormat, toJsonText } from "../lib/output-format.ts";
import { toEscapedJson, toPrintable } from "../lib/printable.ts";
import { startProgress } from "../lib/progress.ts";
import { type CliIo, write, writeUntil } from "./io.ts";

/** A column of a table. `width` is its minimum width in characters, for live rows. */
export interface Column<Row> {
  readonly title: string;
  readonly of: (row: Row) => string | number | boolean | undefined;
  readonly width?: number;
}

export interface RowsOptions<Row> {
  /** Rows arrive one by one, perhaps without end: the table prints each at once instead of waiting to align them. */
  readonly isLive?: boolean;
  /** The JSON of a row, on one line. */
  readonly toJson?: (row: Row) => string;
}

type OutputIo = Pick<CliIo, "env" | "stdout" | "stderr">;

/** Rows that a table collects before it prints, to make its columns wide enough. */
const alignedRowsMax = 500;
const gap = "  ";

/** Writes a command's results to stdout, in the chosen format, and all else to stderr. */
export class Output {
  readonly #io: OutputIo;
  readonly #format: OutputFormat;
  readonly #hasColor: boolean;
  #progress: Disposable | undefined;
  #signal: AbortSignal | undefined;

  constructor(io: OutputIo, format: OutputFormat) {
    this.#io = io;
    this.#format = format;
    const { NO_COLOR: noColor, TERM: term } = io.env;
    this.#hasColor = io.stdout.isTTY === true && !noColor && term !== "dumb";
  }

  /** After this call, the signal ends the command even if nothing reads its output. */
  endWith(signal: AbortSignal): void {
    this.#signal = signal;
  }

  /** Shows on a terminal that the command is running, until it writes something. */
  beginProgress(name: string): void {
    this.#progress = startProgress(this.#io.stderr, name);
  }

  endProgress(): void {
    this.#progress?.[Symbol.dispose]();
    this.#progress = undefined;
  }

  /** A line for people, on stderr. */
  note(text: string): void {
    this.endProgress();
    this.#io.stderr.write(`${toPrintable(text)}\n`, () => {});
  }

  /** Writes the text or bytes unchanged, whatever the format. */
  raw(text: string | Uint8Array): Promise<void> {
    return this.#text(text);
  }

  /** One object that has no form as a table. */
  json(value: object): Promise<void> {
    return this.#json(toJsonText(this.#format === "table" ? "json" : this.#format, value));
  }

  /** One object: as a table, a line for each field. */
  async record<Value extends object>(value: Value, fields: readonly Column<Value>[]): Promise<void> {
    if (this.#format !== "table") return this.#json(toJsonText(this.#format, value));
    const width = Math.max(...fields.map(({ title }) => title.length));
    for (const field of fields) {
      const text = toCell(field, value);
      if (text !== "") await this.#line(`${this.#bold(field.title.padEnd(width))}${gap}${text}`);
    }
  }

  /** Returns the number of rows. If the source fails before its first row, stdout stays empty: `[]` would claim that there are no rows. */
  async rows<Row>(
    rows: AsyncIterable<Row> | Iterable<Row>,
    columns: readonly Column<Row>[],
    { isLive = false, toJson = JSON.stringify }: RowsOptions<Row> = {},
  ): Promise<number> {
    if (this.#format === "table") return this.#table(rows, columns, isLive ? 0 : alignedRowsMax);
    const isArray = this.#format === "json";
    let count = 0;
    try {
      for await (const row of rows) {
        await this.#json(isArray ? `${count === 0 ? "[\n  " : ",\n  "}${toJson(row)}` : `${toJson(row)}\n`);
        count += 1;
      }
    } finally {
      if (isArray && count > 0) await this.#text("\n]\n");
    }
    if (isArray && count === 0) await this.#text("[]\n");
    return count;
  }

  async #table<Row>(
    rows: AsyncIterable<Row> | Iterable<Row>,
    columns: readonly Column<Row>[],
    alignedMax: number,
  ): Promise<number> {
    const table = new Table(columns.map(({ title, width = 0 }) => ({ title, width: Math.max(width, title.length) })));
    let waiting: (readonly string[])[] = [];
    let count = 0;
    const flush = async (): Promise<void> => {
      const lines = waiting.map((cells) => table.line(cells));
      waiting = [];
      const head = count > 0 || lines.length === 0 ? [] : [this.#bold(table.head())];
      count += lines.length;
      if (lines.length > 0) await this.#text([...head, ...lines].map((line) => `${line}\n`).join(""));
    };
    try {
      for await (const row of rows) {
        waiting.push(columns.map((column) => toCell(column, row)));
        if (count > 0 || waiting.length > alignedMax) await flush();
        else table.widen(waiting.at(-1) ?? []);
      }
    } finally {
      await flush();
    }
    return count;
  }

  #bold(text: string): string {
    return this.#hasColor ? `\u{1b}[1m${text}\u{1b}[22m` : text;
  }

  #line(text: string): Promise<void> {
    return this.#text(`${text}\n`);
  }

  /** JSON does not escape C1 control characters: a terminal would obey those of a stranger. A file or a program gets the text unchanged. */
  #json(text: string): Promise<void> {
    return this.#text(this.#io.stdout.isTTY === true ? toEscapedJson(text) : text);
  }

  #text(text: string | Uint8Array): Promise<void> {
    this.endProgress();
    const { stdout } = this.#io;
    return this.#signal === undefined ? write(stdout, text) : writeUntil(stdout, text, this.#signal);
  }
}

class Table {
  readonly #titles: readonly string[];
  #widths: readonly number[];

  constructor(columns: readonly { readonly title: string; readonly width: number }[]) {
    this.#titles = columns.map(({ title }) => title);
    this.#widths = columns.map(({ width }) => width);
  }

  widen(cells: readonly string[]): void {
    this.#widths = this.#widths.map((width, index) => Math.max(width, cells[index]?.length ?? 0));
  }

  head(): string {
    return this.line(this.#titles);
  }

  line(cells: readonly string[]): string {
    return cells
      .map((cell, index) => cell.padEnd(this.#widths[index] ?? 0))
      .join(gap)
      .trimEnd();
  }
}

/** Escapes a cell's text: others may have written it, and it must not move the cursor or break a line. */
function toCell<Row>({ of }: Column<Row>, row: Row): string {
  return toPrintable(String(of(row) ?? ""));
}
