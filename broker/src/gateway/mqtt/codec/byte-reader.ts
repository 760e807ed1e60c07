import { isUtf8 } from "node:buffer";
import { malformed } from "./packet-error.ts";

/** Reads the fields of one packet in order; every read past its end is a malformed packet (MQTT 5.0, section 1.5). */
export class ByteReader {
  readonly #bytes: Buffer;
  #offset = 0;
  readonly #end: number;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#end = bytes.length;
  }

  get isAtEnd(): boolean {
    return this.#offset === this.#end;
  }

  get offset(): number {
    return this.#offset;
  }

  readByte(): number {
    const value = this.#bytes[this.#take(1)];
    return value ?? 0; // #take made sure that it is there
  }

  readUint16(): number {
    return this.#bytes.readUInt16BE(this.#take(2));
  }

  readUint32(): number {
    return this.#bytes.readUInt32BE(this.#take(4));
  }

  /** A variable byte integer in at most four bytes, and in as few as it needs ([MQTT-1.5.5-1]). */
  readVariableInteger(): number {
    let value = 0;
    for (let index = 0; index < 4; index++) {
      const byte = this.readByte();
      value += (byte & 0x7f) * 128 ** index;
      if ((byte & 0x80) === 0) {
        if (byte === 0 && index > 0) throw malformed("a variable byte integer has more bytes than it needs");
        return value;
      }
    }
    throw malformed("a variable byte integer has more than four bytes");
  }

  /** UTF-8 without the null character ([MQTT-1.5.4-1], [MQTT-1.5.4-2]). */
  readString(): string {
    const bytes = this.readBinary();
    if (!isUtf8(bytes) || bytes.includes(0)) throw malformed("a string is not UTF-8 or holds U+0000");
    return bytes.toString("utf8");
  }

  readBinary(): Buffer {
    return this.readBytes(this.readUint16());
  }

  readBytes(length: number): Buffer {
    const start = this.#take(length);
    return this.#bytes.subarray(start, start + length);
  }

  readRest(): Buffer {
    return this.readBytes(this.#end - this.#offset);
  }

  /** @throws PacketError if bytes follow the last field. */
  expectEnd(): void {
    if (!this.isAtEnd) throw malformed(`${this.#end - this.#offset} bytes follow the last field`);
  }

  #take(length: number): number {
    const start = this.#offset;
    if (start + length > this.#end) throw malformed("the packet ends within a field");
    this.#offset = start + length;
    return start;
  }
}
