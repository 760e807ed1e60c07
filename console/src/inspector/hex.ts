import { formatCounted } from "../lib/format.ts";

const bytesPerLine = 16;

/**
 * Bytes of a content that a dump shows. A browser needs five times as long to show bytes in a dump as to show them as text. A dump of 8 MiB would block it
 * for a minute.
 */
const dumpedBytesMax = 2 ** 18;

/** `00000000  68 65 …  |hello…|`, as hexdump -C shows bytes. Of a long content, only the beginning. */
export function toHexDump(bytes: Uint8Array): string {
  const lines: string[] = [];
  const dumped = bytes.subarray(0, dumpedBytesMax);
  for (let offset = 0; offset < dumped.length; offset += bytesPerLine) {
    lines.push(toLine(offset, dumped.subarray(offset, offset + bytesPerLine)));
  }
  const rest = bytes.length - dumped.length;
  if (rest > 0) lines.push(`… and ${formatCounted(rest, "byte")} more`);
  return lines.join("\n");
}

function toLine(offset: number, bytes: Uint8Array): string {
  const pairs = [...bytes].map((byte) => byte.toString(16).padStart(2, "0"));
  const [left, right] = [pairs.slice(0, bytesPerLine / 2), pairs.slice(bytesPerLine / 2)];
  const hex = `${left.join(" ")}  ${right.join(" ")}`.padEnd(bytesPerLine * 3);
  const text = [...bytes].map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
  return `${offset.toString(16).padStart(8, "0")}  ${hex}  |${text}|`;
}
