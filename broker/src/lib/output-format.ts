/** Formats in which a command writes its results. */
export const outputFormats = ["table", "json", "ndjson"] as const;
export type OutputFormat = (typeof outputFormats)[number];

/** Formats a result as JSON. A list has one line for each element, in both formats. Ends with a line break. */
export function toJsonText(format: Exclude<OutputFormat, "table">, result: object): string {
  if (!Array.isArray(result))
    return `${format === "json" ? JSON.stringify(result, null, 2) : JSON.stringify(result)}\n`;
  const lines = result.map((item) => JSON.stringify(item));
  if (format === "ndjson") return lines.map((line) => `${line}\n`).join("");
  return lines.length === 0 ? "[]\n" : `[\n  ${lines.join(",\n  ")}\n]\n`;
}

/** The command was not understood: exit code 2. */
export class WrongFormat extends Error {}

/** The words of a command that parses its flags itself. */
export interface FormatWords {
  readonly format: OutputFormat;
  /** All words but the flag `-o` and its value. */
  readonly words: readonly string[];
}

/** Removes `-o FORMAT`, `-oFORMAT`, `--output FORMAT` and `--output=FORMAT` from a command's words. @throws WrongFormat for an unknown or missing format. */
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
