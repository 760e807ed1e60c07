/** Maximum number of characters of a cell of a table or a message: a server may answer megabytes. */
const charactersMax = 2_000;

/** As {@link toEscaped}, with an ellipsis in place of the end of a long text. */
export function toPrintable(text: string): string {
  return toEscaped(text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text);
}

/** Escapes a text for one line of a terminal: topics, reasons and errors of others must neither move the cursor nor imitate a line of this command. */
export function toEscaped(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escape);
}

function escape(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16)}}`;
}
