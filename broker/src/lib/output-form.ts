/** Forms in which a command writes its results. */
export const forms = ["table", "json", "ndjson"] as const;
export type Form = (typeof forms)[number];

/** Formats a result as JSON. A list has one line for each element, in both forms. Ends with a line break. */
export function toJsonText(form: Exclude<Form, "table">, result: object): string {
  if (!Array.isArray(result)) return `${form === "json" ? JSON.stringify(result, null, 2) : JSON.stringify(result)}\n`;
  const lines = result.map((item) => JSON.stringify(item));
  if (form === "ndjson") return lines.map((line) => `${line}\n`).join("");
  return lines.length === 0 ? "[]\n" : `[\n  ${lines.join(",\n  ")}\n]\n`;
}

/** The command was not understood: exit code 2. */
export class WrongForm extends Error {}

/** The words of a command that parses its flags itself. */
export interface FormWords {
  readonly form: Form;
  /** All words but the flag `-o` and its value. */
  readonly words: readonly string[];
}

/** Removes `-o FORM`, `-oFORM`, `--output FORM` and `--output=FORM` from a command's words. @throws WrongForm for an unknown or missing form. */
export function takeForm(argv: readonly string[]): FormWords {
  let form: Form = "table";
  const words: string[] = [];
  for (let at = 0; at < argv.length; at += 1) {
    const word = argv[at] ?? "";
    const [, inline] = /^(?:--output=|-o=|-o(?=.))(.*)$/s.exec(word) ?? [];
    if (inline !== undefined) {
      form = parseForm(inline);
    } else if (word === "-o" || word === "--output") {
      at += 1;
      form = parseForm(argv[at]);
    } else {
      words.push(word);
    }
  }
  return { form, words };
}

function parseForm(text: string | undefined): Form {
  const form = forms.find((one) => one === text);
  if (form === undefined) throw new WrongForm(`-o must be one of ${forms.join(", ")}`);
  return form;
}
