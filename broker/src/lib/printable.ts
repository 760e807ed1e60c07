/** Maximum number of characters of a cell of a table or a message: a server may answer megabytes. */
const charactersMax = 2_000;

/** As {@link toEscaped}, with an ellipsis in place of the end of a long text. */
export function toPrintable(text: string): string {
  return toEscaped(text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text);
}

const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Escapes a text for one line of a terminal: topics, reasons and errors of others must neither move the cursor nor imitate a line of this command. */
export function toEscaped(text: string): string {
  return text.replaceAll(unprintable, escape);
}

/**
 * As {@link toEscaped}, for the text of JSON values: it stays the text of the same values. Line breaks, tabs and carriage returns are only between values,
 * where an escape is not JSON: the first stay, and the others become blanks.
 */
export function toEscapedJson(json: string): string {
  return json.replaceAll(unprintable, (character) => {
    if (character === "\n") return character;
    return character === "\t" || character === "\r" ? " " : escapeInJson(character);
  });
}

function escapeInJson(character: string): string {
  const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}

function escape(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16)}}`;
}
