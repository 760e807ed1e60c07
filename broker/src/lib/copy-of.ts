/** A copy of a text. A part of a longer text, as `slice` returns it, keeps the whole in memory for as long as the part is kept. */
export function copyOf(text: string): string {
  return Buffer.from(text, "utf16le").toString("utf16le"); // Keeps lone surrogates too.
}
