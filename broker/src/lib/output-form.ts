/** In which form a command writes its results. */
export const forms = ["table", "json", "ndjson"] as const;
export type Form = (typeof forms)[number];

/** A result as JSON: of a list, an element a line in both forms. It ends with a line break. */
export function toJsonText(form: Exclude<Form, "table">, result: object): string {
  if (!Array.isArray(result)) return `${form === "json" ? JSON.stringify(result, null, 2) : JSON.stringify(result)}\n`;
  const lines = result.map((item) => JSON.stringify(item));
  if (form === "ndjson") return lines.map((line) => `${line}\n`).join("");
  return lines.length === 0 ? "[]\n" : `[\n  ${lines.join(",\n  ")}\n]\n`;
}

/** The command was not understood: exit code 2. */
export class WrongForm extends Error {}

/** The flag `-o` of a command that reads its flags itself. */
export interface FormWords {
  readonly form: Form;
  /** What is not the flag. */
  readonly words: readonly string[];
}

/** Takes `-o FORM`, `--output FORM` and `--output=FORM` out of a command's words. @throws WrongForm for a form that there is not. */
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
