/** Copies a text. V8 keeps the whole text in memory as long as a `slice` of it is in use; a copy frees the rest. */
export function copyOf(text: string): string {
  return Buffer.from(text, "utf16le").toString("utf16le"); // Keeps lone surrogates too.
}
