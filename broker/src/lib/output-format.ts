/** Formats in which a command writes its results. */
export const outputFormats = ["table", "json", "ndjson"] as const;
export type OutputFormat = (typeof outputFormats)[number];

/**
 * Formats a result as JSON. Each element of a list is on a line of its own; in `json`, brackets surround them. The text ends with a
 * line break, but is empty for an empty list in `ndjson`.
 */
export function toJsonText(format: Exclude<OutputFormat, "table">, result: object): string {
  if (!Array.isArray(result))
    return `${format === "json" ? JSON.stringify(result, null, 2) : JSON.stringify(result)}\n`;
  const lines = result.map((item) => JSON.stringify(item));
  if (format === "ndjson") return lines.map((line) => `${line}\n`).join("");
  return lines.length === 0 ? "[]\n" : `[\n  ${lines.join(",\n  ")}\n]\n`;
}

/** The value of `-o` is unknown or missing. The commands then exit with code 2. */
export class WrongFormat extends Error {}

/** What `takeFormat` finds in the words of a command: the output format, and the other words. */
export interface FormatWords {
  readonly format: OutputFormat;
  /** All words except `-o` or `--output` and its value. */
  readonly words: readonly string[];
}

/**
 * Takes the output format out of a command's words: `-o FORMAT`, `-oFORMAT`, `-o=FORMAT`, `--output FORMAT` or `--output=FORMAT`. The last one counts; without
 * one it is `table`. @throws WrongFormat for an unknown or missing format.
 */
export function takeFormat(argv: readonly string[]): FormatWords {
  let format: OutputFormat = "table";
  const words: string[] = [];
  for (let at = 0; at < argv.length; at += 1) {
    const word = argv[at] ?? "";
    const [, inline] = /^(?:--output=|-o=|-o(?=.))(.*)$/s.exec(word) ?? [];
    if (inline !== undefined) {
      format = parseFormat(inline);
    } else if (word === "-o" || word === "--output") {
      at += 1;
      format = parseFormat(argv[at]);
    } else {
      words.push(word);
    }
  }
  return { format, words };
}

function parseFormat(text: string | undefined): OutputFormat {
  const format = outputFormats.find((one) => one === text);
  if (format === undefined) throw new WrongFormat(`-o must be one of ${outputFormats.join(", ")}`);
  return format;
}
