import { quote } from "@stele/wire";
import type { Event } from "../../domain/event.ts";
import { parameterError } from "../shared/failure.ts";
import { measureJson } from "../shared/json-shape.ts";
import {
  filterCharactersMax,
  filterConditionsMax,
  parsedBytesMax,
  parsedOverheadBytes,
  unmeasuredContentBytesMax,
} from "./limits.ts";

/** A member by its name, or an element by its index. */
type Step = string | number;
type Literal = string | number | boolean | null;

interface Condition {
  readonly path: readonly Step[];
  readonly value: Literal;
}

/** Stands for a content that is not JSON, or too complex. */
const noJson = Symbol("no JSON");

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Caches the parsed contents of recent events, so that thousands of tails parse each content once. A value may take 50 times the memory of its text.
 * The cache keeps neither events nor batches in memory.
 */
class RecentContents {
  #kept = new WeakMap<Event, { readonly content: unknown }>();
  #bytes = 0;

  of(event: Event): unknown {
    const known = this.#kept.get(event);
    if (known !== undefined) return known.content;
    const content = parseContent(event.content);
    const bytes = event.content.byteLength + parsedOverheadBytes;
    if (this.#bytes + bytes > parsedBytesMax) {
      this.#kept = new WeakMap();
      this.#bytes = 0;
    }
    this.#bytes += bytes;
    this.#kept.set(event, { content });
    return content;
  }
}

const contents = new RecentContents();

/**
 * Selects events by their content, read as JSON: `$.order.status == "paid" && $.items[0].count == 2`. Left of `==` is a path that names one place
 * (a singular query of JSONPath, RFC 9535), right of it a JSON string, number, true, false or null. Strings may be in single quotes. Values of
 * different types are never equal; a path that finds nothing equals no literal, not even `null`.
 */
export class ContentFilter {
  readonly #conditions: readonly Condition[];

  private constructor(conditions: readonly Condition[]) {
    this.#conditions = conditions;
  }

  /**
   * @throws BrokerError 200001 for a filter that is too long, has too many conditions, or has an inexact number; for a syntax error, the message names the
   * place.
   */
  static parse(text: string): ContentFilter {
    if (text.length > filterCharactersMax) {
      throw parameterError(`"filter" has ${text.length} characters, at most ${filterCharactersMax}`);
    }
    return new ContentFilter(new FilterParser(text).parse());
  }

  matches(event: Event): boolean {
    const content = contents.of(event);
    return content !== noJson && this.#conditions.every(({ path, value }) => find(content, path) === value);
  }
}

/** Whether a content is too complex to parse: a long one with too many values or names would take seconds. */
function isTooComplex(bytes: Uint8Array): boolean {
  if (bytes.byteLength <= unmeasuredContentBytesMax) return false;
  return measureJson(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)).refusal !== undefined;
}

function parseContent(bytes: Uint8Array): unknown {
  if (isTooComplex(bytes)) return noJson;
  try {
    return JSON.parse(utf8.decode(bytes)) as unknown;
  } catch {
    return noJson;
  }
}

/** The value at a path; if there is none, undefined, which equals no literal. */
function find(content: unknown, path: readonly Step[]): unknown {
  let place = content;
  for (const step of path) {
    if (typeof place !== "object" || place === null) return undefined;
    if (Array.isArray(place) !== (typeof step === "number") || !Object.hasOwn(place, step)) return undefined;
    place = (place as Readonly<Record<Step, unknown>>)[step]; // It has the member, or the element.
  }
  return place;
}

const space = /[ \t\r\n]*/y;
const name = /\.([A-Za-z_\u0080-\u{10ffff}][A-Za-z0-9_\u0080-\u{10ffff}]*)/uy;
const index = /\[[ \t]*(0|[1-9]\d{0,8})[ \t]*\]/y;
const openBracket = /\[[ \t]*(?=["'])/y;
const closeBracket = /[ \t]*\]/y;
const doubleQuoted = /"(?:[^"\\]|\\.)*"/y;
const singleQuoted = /'((?:[^'\\]|\\.)*)'/y;
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const word = /(?:true|false|null)(?![A-Za-z0-9_])/y;

class FilterParser {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  parse(): readonly Condition[] {
    const conditions = [this.#condition()];
    while (this.#at < this.#text.length) {
      this.#expect("&&");
      conditions.push(this.#condition());
      if (conditions.length > filterConditionsMax) {
        throw parameterError(`"filter" has more than ${filterConditionsMax} conditions`);
      }
    }
    return conditions;
  }

  #condition(): Condition {
    this.#take(space);
    this.#expect("$");
    const path: Step[] = [];
    for (let step = this.#step(); step !== undefined; step = this.#step()) path.push(step);
    this.#take(space);
    this.#expect("==");
    this.#take(space);
    const value = this.#literal();
    this.#take(space);
    return { path, value };
  }

  /** The next step; undefined at the end of the path. */
  #step(): Step | undefined {
    const member = this.#take(name)?.[1];
    if (member !== undefined) return member;
    const element = this.#take(index)?.[1];
    if (element !== undefined) return Number(element);
    if (this.#take(openBracket) === undefined) return undefined;
    const quoted = this.#string();
    if (quoted === undefined || this.#take(closeBracket) === undefined) throw this.#fault("a name in quotes and ]");
    return quoted;
  }

  #literal(): Literal {
    const text = this.#string();
    if (text !== undefined) return text;
    const plain = this.#take(word)?.[0];
    if (plain !== undefined) return JSON.parse(plain) as Literal; // The pattern matches JSON literals only.
    return this.#number();
  }

  #number(): number {
    const found = this.#take(number)?.[0];
    if (found === undefined) throw this.#fault('a JSON string, number, "true", "false" or "null"');
    const value = Number(found);
    if (isExact(found, value)) return value;
    throw parameterError(
      `"filter" has the number ${quote(found)}: its absolute value is 2^53 or more, or it has more digits than a double keeps`,
    );
  }

  #string(): string | undefined {
    const double = this.#take(doubleQuoted)?.[0];
    const single = double === undefined ? this.#take(singleQuoted)?.[1] : undefined;
    if (double === undefined && single === undefined) return undefined;
    try {
      return JSON.parse(double ?? toDoubleQuoted(single ?? "")) as string; // A JSON string.
    } catch {
      throw this.#fault("a string whose escapes are those of JSON, before it");
    }
  }

  #expect(token: string): void {
    if (!this.#text.startsWith(token, this.#at)) throw this.#fault(token);
    this.#at += token.length;
  }

  #take(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found === null) return undefined;
    this.#at = pattern.lastIndex;
    return found;
  }

  #fault(expected: string): Error {
    const place = `character ${this.#at + 1} of ${quote(this.#text)}`;
    return parameterError(`"filter" is not a content filter: expected ${expected} at ${place}`);
  }
}

/** Converts a string in single quotes, where `"` needs no escape, to double quotes, where `'` needs none. */
function toDoubleQuoted(text: string): string {
  const replaced = text.replaceAll(/\\.|"/gs, (found) => (found === '"' ? '\\"' : found === "\\'" ? "'" : found));
  return `"${replaced}"`;
}

/** Whether a double keeps all digits of the number. Contents are read as doubles, so a number from 2^53 on would match its neighbours. */
function isExact(text: string, value: number): boolean {
  return Math.abs(value) <= Number.MAX_SAFE_INTEGER && toDecimal(text) === toDecimal(String(value));
}

/** The significant digits and their power of ten, without the sign: the same for all texts of one number. */
function toDecimal(text: string): string {
  const [mantissa = "", exponent = "0"] = text.toLowerCase().split("e");
  const [whole = "", fraction = ""] = mantissa.replace("-", "").split(".");
  const digits = (whole + fraction).replace(/^0+/, "");
  const significant = digits.replace(/0+$/, "");
  if (significant === "") return "0";
  return `${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`;
}
