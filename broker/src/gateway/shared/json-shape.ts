import { jsonDepthMax, jsonNamesMax, jsonValuesMax } from "../limits.ts";

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;

/** What {@link measureJson} counted in a JSON text, up to the limit that the text exceeds. */
export interface JsonShape {
  readonly values: number;
  /** Number of members of all objects, including members with a repeated name. */
  readonly names: number;
  /** Which limit the text exceeds; undefined if none. */
  readonly refusal: string | undefined;
}

/**
 * Counts values before the text is parsed. An empty array or object counts as two. For a text that is not JSON the count may be wrong; parsing it
 * fails later.
 */
export function measureJson(text: Buffer): JsonShape {
  const names = new Names(text);
  const toShape = (refusal: string | undefined): JsonShape => ({ values, names: names.count, refusal });
  let values = 1;
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const byte = text[at] ?? 0;
    if (byte === quote) at = names.readString(at);
    else if (byte === colon) {
      names.add();
      if (names.areTooMany) return toShape(`the JSON body has more than ${jsonNamesMax} different names`);
    } else if (isOpening(byte)) {
      depth += 1;
      if (depth > jsonDepthMax) return toShape(`the JSON body is more than ${jsonDepthMax} levels deep`);
    } else if (isClosing(byte)) depth -= 1;
    if (byte === comma || isOpening(byte)) values += 1;
    if (values > jsonValuesMax) return toShape(`the JSON body has more than ${jsonValuesMax} values`);
  }
  return toShape(undefined);
}

/** Whether an object in the text of `parsed` has a name twice. `JSON.parse` silently keeps only the last of these members. */
export function repeatsName({ names }: Pick<JsonShape, "names">, parsed: unknown): boolean {
  return names > countNames(parsed);
}

/** Recursion cannot overflow the stack: {@link measureJson} limits the depth. */
function countNames(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const members: readonly unknown[] = Object.values(value);
  return members.reduce((sum: number, member) => sum + countNames(member), Array.isArray(value) ? 0 : members.length);
}

/** The names of members in a text: the strings before colons. */
class Names {
  readonly #text: Buffer;
  readonly #different = new Set<string>();
  #count = 0;
  #start = 0;
  #end = 0;

  constructor(text: Buffer) {
    this.#text = text;
  }

  get count(): number {
    return this.#count;
  }

  get areTooMany(): boolean {
    return this.#different.size > jsonNamesMax;
  }

  /** Remembers a string, which may be a name, and returns its end. */
  readString(start: number): number {
    this.#start = start;
    this.#end = findStringEnd(this.#text, start);
    return this.#end;
  }

  /** Counts the last string as a name. The first `jsonNamesMax` names are not compared, to keep small requests cheap. */
  add(): void {
    this.#count += 1;
    if (this.#count > jsonNamesMax) this.#different.add(this.#text.toString("latin1", this.#start, this.#end));
  }
}

function isOpening(byte: number): boolean {
  return byte === 0x5b || byte === 0x7b;
}

function isClosing(byte: number): boolean {
  return byte === 0x5d || byte === 0x7d;
}

function findStringEnd(text: Buffer, start: number): number {
  for (let end = text.indexOf(quote, start + 1); end !== -1; end = text.indexOf(quote, end + 1)) {
    if (!isEscaped(text, end)) return end;
  }
  return text.length;
}

function isEscaped(text: Buffer, at: number): boolean {
  let first = at;
  while (text[first - 1] === backslash) first -= 1;
  return (at - first) % 2 === 1;
}
