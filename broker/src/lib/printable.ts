/** Maximum number of characters of one line: a server may answer megabytes. */
const charactersMax = 2_000;

/** One line for a terminal. Topics, reasons and errors come from others: escaped, they can neither move the cursor nor imitate a line of ours. */
export function toPrintable(text: string): string {
  const cut = text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text;
  return cut.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escape);
}

function escape(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16)}}`;
}
