/** Characters of a quoted value; the rest is cut. */
const quotedCharactersMax = 80;

/** A value as an error message quotes it: JSON, cut after 80 characters, so that no hostile input floods a log. */
export function quote(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length <= quotedCharactersMax ? text : `${text.slice(0, quotedCharactersMax)}…`;
}
