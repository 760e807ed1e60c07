/** Maximum number of characters of a cell of a table or a message: a server may answer megabytes. */
const charactersMax = 2_000;

/** As {@link toEscaped}, but cuts a long text and adds an ellipsis. */
export function toPrintable(text: string): string {
  return toEscaped(text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text);
}

const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Escapes a text for one line of a terminal: a text that others wrote must not move the cursor or look like a line of this command. */
export function toEscaped(text: string): string {
  return text.replaceAll(unprintable, escape);
}

/**
 * As {@link toEscaped}, for JSON: the result is JSON of the same values. In valid JSON, line breaks, tabs and carriage returns stand only between values, where
 * an escape is not allowed: line breaks stay, the others become spaces.
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
