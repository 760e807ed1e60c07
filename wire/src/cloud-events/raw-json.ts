const quote = 0x22;
const backslash = 0x5c;
const [openingBracket, openingBrace] = [0x5b, 0x7b];
const [closingBracket, closingBrace] = [0x5d, 0x7d];
const comma = 0x2c;
const colon = 0x3a;

/**
 * The unparsed texts of an array's elements, or of an object's values with their names. `text` must be valid JSON of an array or object. A parser would round
 * numbers beyond 2^53.
 */
export function readRawParts(text: string): readonly (readonly [name: string, value: string])[] {
  const parts: [string, string][] = [];
  const inner = text.trim().slice(1, -1);
  let [depth, start, name] = [0, 0, ""];
  const end = (at: number): void => {
    const value = inner.slice(start, at).trim();
    if (value !== "") parts.push([name, value]);
    [start, name] = [at + 1, ""];
  };
  for (let at = 0; at < inner.length; at += 1) {
    const code = inner.charCodeAt(at);
    if (code === quote) at = findStringEnd(inner, at);
    else if (code === openingBracket || code === openingBrace) depth += 1;
    else if (code === closingBracket || code === closingBrace) depth -= 1;
    else if (depth === 0 && code === comma) end(at);
    else if (depth === 0 && code === colon) {
      name = parseRawPart(inner.slice(start, at).trim()) as string; // Names of members are strings.
      start = at + 1;
    }
  }
  end(inner.length);
  return parts;
}

/** The value of a part. Most are strings without an escape, which need no parser. */
export function parseRawPart(text: string): unknown {
  return text.charCodeAt(0) === quote && !text.includes("\\") ? text.slice(1, -1) : (JSON.parse(text) as unknown);
}

function findStringEnd(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text.charCodeAt(at) !== quote) at += text.charCodeAt(at) === backslash ? 2 : 1;
  return at;
}
