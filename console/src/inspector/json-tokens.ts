export interface JsonToken {
  readonly kind: "key" | "string" | "number" | "word" | "plain";
  readonly text: string;
}

const pattern = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
const indent = "  ";

/**
 * Longest text that is laid out, and longest layout, in characters. Indentation grows with the square of the depth: 64 KiB of nested brackets would become
 * gigabytes. And the pattern takes stack for each escape of a string: one of 8 MiB could exhaust it.
 */
const layoutCharactersMax = 2 ** 20;

/**
 * Lays out a JSON text without changing a value. `JSON.parse` would round numbers and drop repeated keys; here a number keeps all its digits, and a key stays
 * repeated. A text that is too long, or whose layout would be, stays as it is. Undefined if the text is not JSON.
 */
export function layOutJson(text: string): readonly JsonToken[] | undefined {
  if (!isJson(text)) return undefined;
  if (text.length > layoutCharactersMax) return [{ kind: "plain", text }];
  const parts = text.match(pattern) ?? [];
  const layout = new Layout();
  for (const [index, part] of parts.entries()) {
    layout.add(part, { previous: parts[index - 1], next: parts[index + 1] });
    if (layout.characters > layoutCharactersMax) return [{ kind: "plain", text }];
  }
  return layout.tokens;
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

interface Neighbours {
  readonly previous: string | undefined;
  readonly next: string | undefined;
}

class Layout {
  readonly tokens: JsonToken[] = [];
  #depth = 0;
  #characters = 0;
  /** Punctuation and spaces since the last key or value. They have no colour. */
  #plain = "";

  /** Length of the layout so far. */
  get characters(): number {
    return this.#characters;
  }

  add(part: string, { previous, next }: Neighbours): void {
    if (part === "{" || part === "[") this.#open(part, next);
    else if (part === "}" || part === "]") this.#close(part, previous);
    else if (part === ",") this.#append(`,${this.#newLine()}`);
    else if (part === ":") this.#append(": ");
    else this.#push({ kind: kindOf(part, next), text: part });
    if (next === undefined) this.#flush();
  }

  #open(part: string, next: string | undefined): void {
    this.#depth += 1;
    const isEmpty = next === "}" || next === "]";
    this.#append(isEmpty ? part : part + this.#newLine());
  }

  #close(part: string, previous: string | undefined): void {
    this.#depth -= 1;
    const isEmpty = previous === "{" || previous === "[";
    this.#append(isEmpty ? part : this.#newLine() + part);
  }

  #newLine(): string {
    return `\n${indent.repeat(this.#depth)}`;
  }

  #append(plain: string): void {
    this.#plain += plain;
    this.#characters += plain.length;
  }

  #push(token: JsonToken): void {
    this.#flush();
    this.tokens.push(token);
    this.#characters += token.text.length;
  }

  #flush(): void {
    if (this.#plain !== "") this.tokens.push({ kind: "plain", text: this.#plain });
    this.#plain = "";
  }
}

function kindOf(part: string, next: string | undefined): JsonToken["kind"] {
  if (part.startsWith('"')) return next === ":" ? "key" : "string";
  return /^[-\d]/.test(part) ? "number" : "word";
}
