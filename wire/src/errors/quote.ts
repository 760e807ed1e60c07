/** Maximum number of characters of a quoted value. */
const quotedCharactersMax = 80;

/** A value as an error message quotes it: JSON, cut after 80 characters, so that hostile input cannot flood a log. */
export function quote(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length <= quotedCharactersMax ? text : `${text.slice(0, quotedCharactersMax)}…`;
}
