/** The texts that are there, joined by semicolons; undefined if there is none. */
export function joinTexts(texts: readonly (string | undefined)[]): string | undefined {
  const found = texts.filter((text) => text !== undefined);
  return found.length === 0 ? undefined : found.join("; ");
}
