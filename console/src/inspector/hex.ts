const bytesPerLine = 16;

/** `00000000  68 65 …  |hello…|`, as hexdump -C shows bytes. */
export function toHexDump(bytes: Uint8Array): string {
  const lines: string[] = [];
  for (let offset = 0; offset < bytes.length; offset += bytesPerLine) {
    lines.push(toLine(offset, bytes.subarray(offset, offset + bytesPerLine)));
  }
  return lines.join("\n");
}

function toLine(offset: number, bytes: Uint8Array): string {
  const pairs = [...bytes].map((byte) => byte.toString(16).padStart(2, "0"));
  const [left, right] = [pairs.slice(0, bytesPerLine / 2), pairs.slice(bytesPerLine / 2)];
  const hex = `${left.join(" ")}  ${right.join(" ")}`.padEnd(bytesPerLine * 3);
  const text = [...bytes].map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
  return `${offset.toString(16).padStart(8, "0")}  ${hex}  |${text}|`;
}
