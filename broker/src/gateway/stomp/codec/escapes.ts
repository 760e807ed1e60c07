import { FrameError } from "./frame-error.ts";
import type { Version } from "./frame.ts";

/** Escapes of each version, by the character after the backslash ("Value Encoding" of 1.1 and 1.2). 1.0 has none. */
const escapesOf: Readonly<Record<Exclude<Version, "1.0">, Readonly<Record<string, string>>>> = {
  "1.1": { n: "\n", c: ":", "\\": "\\" },
  "1.2": { r: "\r", n: "\n", c: ":", "\\": "\\" },
};

const codes: Readonly<Record<string, string>> = { "\r": "\\r", "\n": "\\n", ":": "\\c", "\\": "\\\\" };

/** @throws FrameError for an undefined escape. */
export function unescapeHeader(text: string, version: Version): string {
  if (version === "1.0" || !text.includes("\\")) return text;
  const escapes = escapesOf[version];
  return text.replaceAll(/\\(.?)/gsu, (escape, code: string) => {
    const character = Object.hasOwn(escapes, code) ? escapes[code] : undefined;
    if (character === undefined) {
      throw new FrameError(`${JSON.stringify(escape)} is not an escape of STOMP ${version}`);
    }
    return character;
  });
}

/** A name or value as it is sent; undefined if the version cannot encode it. */
export function escapeHeader(
  text: string,
  { version, isName }: { readonly version: Version; readonly isName: boolean },
): string | undefined {
  if (!/[\0\r\n:\\]/.test(text)) return text;
  if (text.includes("\0")) return undefined; // many clients end a frame at the first NUL
  if (version === "1.0")
    return text.includes("\n") || text.includes("\r") || (isName && text.includes(":")) ? undefined : text;
  if (version === "1.1" && text.includes("\r")) return undefined; // 1.1 has no escape for CR, and clients treat it as an end of line
  return escapeText(text, version);
}

/** Escapes the characters for which the version has an escape, and no others. */
export function escapeText(text: string, version: Version): string {
  if (version === "1.0") return text;
  return text.replaceAll(version === "1.1" ? /[\n:\\]/g : /[\r\n:\\]/g, (character) => codes[character] ?? character);
}
