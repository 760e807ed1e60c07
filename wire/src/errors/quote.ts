/** Maximum number of characters of a quoted value. */
const quotedCharactersMax = 80;

/** First half of a surrogate pair. JSON.stringify leaves no half by itself. */
const highSurrogate = /[\ud800-\udbff]/;

/** A value as an error message quotes it: JSON, cut after 80 characters, so that hostile input cannot flood a log. */
export function quote(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  if (text.length <= quotedCharactersMax) return text;
  const end = highSurrogate.test(text.charAt(quotedCharactersMax - 1)) ? quotedCharactersMax - 1 : quotedCharactersMax;
  return `${text.slice(0, end)}…`;
}
