export interface JsonToken {
  readonly kind: "key" | "string" | "number" | "word" | "plain";
  readonly text: string;
}

const pattern = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
const indent = "  ";

/**
 * Lays out a JSON text without changing a value. `JSON.parse` would round numbers and drop repeated keys; here a number keeps all its digits, and a key stays
 * repeated. Undefined if the text is no JSON.
 */
export function layOutJson(text: string): readonly JsonToken[] | undefined {
  if (!isJson(text)) return undefined;
  const parts = text.match(pattern) ?? [];
  const layout = new Layout();
  for (const [index, part] of parts.entries()) layout.add(part, parts[index + 1]);
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

class Layout {
  readonly tokens: JsonToken[] = [];
  #depth = 0;
  /** Punctuation and spaces since the last key or value. They have no colour. */
  #plain = "";

  add(part: string, next: string | undefined): void {
    if (part === "{" || part === "[") this.#open(part, next);
    else if (part === "}" || part === "]") this.#close(part);
    else if (part === ",") this.#plain += `,${this.#newLine()}`;
    else if (part === ":") this.#plain += ": ";
    else this.#push({ kind: kindOf(part, next), text: part });
    if (next === undefined) this.#flush();
  }

  #open(part: string, next: string | undefined): void {
    this.#depth += 1;
    this.#plain += part;
    if (next !== "}" && next !== "]") this.#plain += this.#newLine();
  }

  #close(part: string): void {
    this.#depth -= 1;
    const isEmpty = /[{[]$/.test(this.#plain);
    this.#plain += isEmpty ? part : this.#newLine() + part;
  }

  #newLine(): string {
    return `\n${indent.repeat(this.#depth)}`;
  }

  #push(token: JsonToken): void {
    this.#flush();
    this.tokens.push(token);
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
