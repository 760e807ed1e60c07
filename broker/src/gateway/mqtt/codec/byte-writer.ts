/** Bytes of a variable byte integer. */
export function variableIntegerBytes(value: number): number {
  if (value < 128) return 1;
  if (value < 16_384) return 2;
  return value < 2_097_152 ? 3 : 4;
}

/** Writes the fields of one packet into a buffer of its exact length. */
export class ByteWriter {
  readonly bytes: Buffer;
  #offset = 0;

  constructor(length: number) {
    this.bytes = Buffer.allocUnsafe(length);
  }

  writeByte(value: number): void {
    this.bytes[this.#offset++] = value;
  }

  writeUint16(value: number): void {
    this.#offset = this.bytes.writeUInt16BE(value, this.#offset);
  }

  writeUint32(value: number): void {
    this.#offset = this.bytes.writeUInt32BE(value, this.#offset);
  }

  writeVariableInteger(value: number): void {
    let rest = value;
    for (; rest > 127; rest = Math.floor(rest / 128)) this.writeByte((rest % 128) | 0x80);
    this.writeByte(rest);
  }

  /** `byteLength` is that of the text in UTF-8. */
  writeString(text: string, byteLength = Buffer.byteLength(text)): void {
    this.writeUint16(byteLength);
    this.#offset += this.bytes.write(text, this.#offset, byteLength, "utf8");
  }

  writeBinary(value: Buffer): void {
    this.writeUint16(value.length);
    this.writeBytes(value);
  }

  writeBytes(value: Buffer): void {
    this.#offset += value.copy(this.bytes, this.#offset);
  }
}
