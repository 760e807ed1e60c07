/** Maximum number of characters of one line: a server may answer megabytes. */
const charactersMax = 2_000;

/** Escapes a text for one line of a terminal: topics, reasons and errors of others must neither move the cursor nor imitate a line of this command. */
export function toPrintable(text: string): string {
  const cut = text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text;
  return cut.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escape);
}

function escape(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16)}}`;
}
