import * as fc from "fast-check";

/** Halves of surrogate pairs are not characters. */
const firstHalf = 0xd800;
const halves = 0x800;
const codePointMax = 0x10ffff;

/**
 * Any character of Unicode: for strings, like the unit `binary` of fast-check. That unit makes a table of all 1.1 million
 * characters, which takes a second of the processor and stays in memory.
 */
export const anyCharacter = fc.nat(codePointMax - halves).map(toCharacter, toIndex);

function toCharacter(index: number): string {
  return String.fromCodePoint(index < firstHalf ? index : index + halves);
}

/** Throws if the value is not a character, as fast-check expects. */
function toIndex(value: unknown): number {
  const codePoint = (typeof value === "string" && value.codePointAt(0)) || 0;
  const index = codePoint < firstHalf ? codePoint : codePoint - halves;
  if (toCharacter(index) !== value) throw new Error("not a character");
  return index;
}
