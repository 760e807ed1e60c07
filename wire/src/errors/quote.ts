/** Maximum number of characters of a quoted value. */
const quotedCharactersMax = 80;

/** First half of a surrogate pair. JSON.stringify escapes a half without its pair, so its output contains whole pairs only. */
const highSurrogate = /[\ud800-\udbff]/;

/** Quotes a value for an error message: JSON, cut after 80 characters so that hostile input cannot flood a log. */
export function quote(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  if (text.length <= quotedCharactersMax) return text;
  const end = highSurrogate.test(text.charAt(quotedCharactersMax - 1)) ? quotedCharactersMax - 1 : quotedCharactersMax;
  return `${text.slice(0, end)}…`;
}
