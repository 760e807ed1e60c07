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

const NO_BYTES: Buffer = Buffer.alloc(0);

/**
 * Cuts a stream of bytes into packets, whatever pieces it comes in. Keeps at most one unfinished packet, in one buffer of at most twice what has
 * come of it. A packet that is too large is refused from its fixed header, before its body arrives.
 */
export class Framer {
  #packetBytesMax: number;
  /** What was pushed and not given stands from `#start` to `#end`; the rest is room for more. */
  #bytes = NO_BYTES;
  #start = 0;
  #end = 0;
  /** Length at which the unfinished packet is complete; where its header is not, that of one more byte. */
  #needed = 1;

  /** `packetBytesMax` counts the fixed header too, as Maximum Packet Size does (MQTT 5.0, section 3.1.2.11.4). */
  constructor(packetBytesMax: number) {
    this.#packetBytesMax = packetBytesMax;
  }

  /** Bytes that were pushed and not given. */
  get pendingBytes(): number {
    return this.#end - this.#start;
  }

  /** Bytes that are held, with the room for more. */
  get heldBytes(): number {
    return this.#bytes.length;
  }

  /** Changes the limit from the next packet on. */
  allow(packetBytesMax: number): void {
    this.#packetBytesMax = packetBytesMax;
  }

  /**
   * Gives the packets that `chunk` completes to `take`, in order, until one answers false: the rest stays for {@link resume}.
   * @throws PacketError for bytes that cannot be a packet.
   */
  push(chunk: Buffer, take: (frame: Frame) => boolean): void {
    if (chunk.length === 0) return;
    if (this.pendingBytes === 0) this.#hold(chunk, chunk.length);
    else this.#append(chunk);
    if (this.pendingBytes >= this.#needed) this.resume(take);
  }

  /** Gives on what an earlier call left. */
  resume(take: (frame: Frame) => boolean): void {
    this.#needed = 1;
    for (let goesOn = true; this.pendingBytes > 0; ) {
      if (!goesOn) return;
      const header = this.#readHeader();
      const end = header === undefined ? this.#end + 1 : header.start + header.bodyLength;
      if (header === undefined || end > this.#end) {
        this.#needed = end - this.#start;
        this.#grow(0); // a chunk would stay in memory whole for the little that is left of it
        return;
      }
      const first = this.#bytes[this.#start] ?? 0; // the header was read from there
      this.#start = end;
      goesOn = take({ type: first >> 4, flags: first & 0x0f, body: this.#bytes.subarray(header.start, end) });
    }
    this.#hold(NO_BYTES, 0);
  }

  #hold(bytes: Buffer, end: number): void {
    this.#bytes = bytes;
    this.#start = 0;
    this.#end = end;
  }

  #append(chunk: Buffer): void {
    if (this.#end + chunk.length > this.#bytes.length) this.#grow(chunk.length);
    this.#end += chunk.copy(this.#bytes, this.#end);
  }

  /** Moves what is held into a buffer of its own with room for `more`: twice as much, but no more than the packet needs. */
  #grow(more: number): void {
    const { pendingBytes } = this;
    const bytes = Buffer.allocUnsafeSlow(Math.max(pendingBytes + more, Math.min(2 * pendingBytes, this.#needed)));
    this.#bytes.copy(bytes, 0, this.#start, this.#end);
    this.#hold(bytes, pendingBytes);
  }

  /** Where the body of the next packet starts and how long it is; undefined while the header is not complete. */
  #readHeader(): { readonly start: number; readonly bodyLength: number } | undefined {
    let bodyLength = 0;
    for (let index = 1; index < FIXED_HEADER_BYTES_MAX; index++) {
      const at = this.#start + index;
      const byte = at < this.#end ? this.#bytes[at] : undefined;
      if (byte === undefined) return undefined;
      bodyLength += (byte & 0x7f) * 128 ** (index - 1);
      if ((byte & 0x80) !== 0) continue;
      if (byte === 0 && index > 1) throw malformed("the length has more bytes than it needs");
      this.#checkSize(index + 1 + bodyLength);
      return { start: at + 1, bodyLength };
    }
    throw malformed("the length has more than four bytes");
  }

  #checkSize(size: number): void {
    if (size <= this.#packetBytesMax) return;
    throw new PacketError(PACKET_TOO_LARGE, `a packet of ${size} bytes, at most ${this.#packetBytesMax} are taken`);
  }
}
