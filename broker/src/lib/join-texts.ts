/** The defined texts, joined by semicolons; undefined if all are undefined. */
export function joinTexts(texts: readonly (string | undefined)[]): string | undefined {
  const found = texts.filter((text) => text !== undefined);
  return found.length === 0 ? undefined : found.join("; ");
}
