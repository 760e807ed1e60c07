import { malformed, PACKET_TOO_LARGE, PacketError } from "./packet-error.ts";

/** One packet: its first byte, and what follows the fixed header. */
export interface Frame {
  /** 1 to 15. */
  readonly type: number;
  /** The low four bits of the first byte. */
  readonly flags: number;
  /** A view of the bytes pushed where they came in one chunk. */
  readonly body: Buffer;
}

/** First byte and at most four of the length. */
const FIXED_HEADER_BYTES_MAX = 5;

/**
 * Cuts a stream of bytes into packets, whatever pieces it comes in. Keeps at most one unfinished packet. A packet that is too large is refused
 * from its fixed header, before its body arrives.
 */
export class Framer {
  readonly #packetBytesMax: number;
  #chunks: Buffer[] = [];
  #length = 0;
  /** Length at which the unfinished packet is complete; 1 while its header is not. */
  #needed = 1;

  /** `packetBytesMax` counts the fixed header too, as Maximum Packet Size does (MQTT 5.0, section 3.1.2.11.4). */
  constructor(packetBytesMax: number) {
    this.#packetBytesMax = packetBytesMax;
  }

  /** Bytes of the unfinished packet. */
  get pendingBytes(): number {
    return this.#length;
  }

  /**
   * Gives the packets that `chunk` completes to `take`, in order, until one answers false: the rest stays for {@link resume}.
   * @throws PacketError for bytes that cannot be a packet.
   */
  push(chunk: Buffer, take: (frame: Frame) => boolean): void {
    if (chunk.length === 0) return;
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#length >= this.#needed) this.resume(take);
  }

  /** Gives on what an earlier call left. */
  resume(take: (frame: Frame) => boolean): void {
    if (this.#length === 0) return;
    const bytes = this.#join();
    let offset = 0;
    this.#needed = 1;
    for (let goesOn = true; goesOn && offset < bytes.length; ) {
      const header = this.#readHeader(bytes, offset);
      if (header === undefined) break;
      const end = header.start + header.bodyLength;
      if (end > bytes.length) {
        this.#needed = end - offset;
        break;
      }
      const first = bytes[offset] ?? 0; // the header was read from there
      offset = end;
      goesOn = take({ type: first >> 4, flags: first & 0x0f, body: bytes.subarray(header.start, end) });
    }
    this.#keep(bytes.subarray(offset));
  }

  #join(): Buffer {
    const [only] = this.#chunks;
    return this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks, this.#length);
  }

  #keep(rest: Buffer): void {
    this.#chunks = rest.length === 0 ? [] : [rest];
    this.#length = rest.length;
    if (this.#needed === 1) this.#needed = rest.length + 1;
  }

  /** Where the body of the packet at `offset` starts and how long it is; undefined while the header is not complete. */
  #readHeader(bytes: Buffer, offset: number): { readonly start: number; readonly bodyLength: number } | undefined {
    let bodyLength = 0;
    for (let index = 1; index < FIXED_HEADER_BYTES_MAX; index++) {
      const byte = bytes[offset + index];
      if (byte === undefined) return undefined;
      bodyLength += (byte & 0x7f) * 128 ** (index - 1);
      if ((byte & 0x80) !== 0) continue;
      if (byte === 0 && index > 1) throw malformed("the length has more bytes than it needs");
      this.#checkSize(index + 1 + bodyLength);
      return { start: offset + index + 1, bodyLength };
    }
    throw malformed("the length has more than four bytes");
  }

  #checkSize(size: number): void {
    if (size <= this.#packetBytesMax) return;
    throw new PacketError(PACKET_TOO_LARGE, `a packet of ${size} bytes, at most ${this.#packetBytesMax} are taken`);
  }
}
