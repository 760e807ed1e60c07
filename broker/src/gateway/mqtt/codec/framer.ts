import { PendingBytes } from "../../shared/connection/pending-bytes.ts";
import { malformed, PACKET_TOO_LARGE, PacketError } from "./packet-error.ts";

/** One packet: its first byte, and what follows the fixed header. */
export interface Frame {
  /** 0 to 15; 0 is reserved, and the decoder refuses it. */
  readonly type: number;
  /** The low four bits of the first byte. */
  readonly flags: number;
  /** A view of the pushed bytes, if they came in one chunk. */
  readonly body: Buffer;
}

/** Longest fixed header of a packet, in bytes: the first byte, and at most four bytes of the length. */
const FIXED_HEADER_BYTES_MAX = 5;

/**
 * Cuts a stream of bytes into packets, whatever its chunks. Once all whole packets are taken, it keeps at most one unfinished packet, in one buffer of
 * at most twice its received bytes. Refuses a packet that is too large as soon as its fixed header has arrived.
 */
export class Framer {
  #packetBytesMax: number;
  /** Received bytes that are not decoded yet. */
  readonly #pending = new PendingBytes();
  /** Length of the unfinished packet; while its header is incomplete, one more than the received bytes. */
  #needed = 1;

  /** `packetBytesMax` counts the fixed header too, as Maximum Packet Size does (MQTT 5.0, section 3.1.2.11.4). */
  constructor(packetBytesMax: number) {
    this.#packetBytesMax = packetBytesMax;
  }

  /** Pushed bytes that were not passed on yet. */
  get pendingBytes(): number {
    return this.#pending.length;
  }

  /** Size of the buffer, including free room. */
  get heldBytes(): number {
    return this.#pending.heldLength;
  }

  /** Changes the limit from the next packet on. */
  allow(packetBytesMax: number): void {
    this.#packetBytesMax = packetBytesMax;
  }

  /**
   * Passes packets to `take` in order: first the packets that an earlier call left, then those that `chunk` completes. Stops when `take` returns false;
   * {@link resume} continues with the rest. @throws PacketError for bytes that cannot be a packet, and for a packet that is too large.
   */
  push(chunk: Buffer, take: (frame: Frame) => boolean): void {
    if (chunk.length === 0) return;
    this.#pending.push(chunk, this.#needed);
    if (this.pendingBytes >= this.#needed) this.resume(take);
  }

  /** Frees the buffer. Neither `push` nor `resume` is called afterwards. */
  discard(): void {
    this.#pending.discard();
  }

  /** Passes on the packets that an earlier call left. Throws as {@link push} does. */
  resume(take: (frame: Frame) => boolean): void {
    this.#needed = 1;
    for (let wantsMore = true; this.pendingBytes > 0; ) {
      if (!wantsMore) return;
      const header = this.#readHeader();
      const end = header === undefined ? this.pendingBytes + 1 : header.start + header.bodyLength;
      if (header === undefined || end > this.pendingBytes) {
        this.#needed = end;
        this.#pending.settle(end); // else a whole chunk would stay in memory for its small rest
        return;
      }
      const first = this.#pending.at(0) ?? 0; // the header was read from there
      const body = this.#pending.slice(header.start, end);
      this.#pending.consume(end);
      wantsMore = take({ type: first >> 4, flags: first & 0x0f, body });
    }
    this.#pending.settle(0);
  }

  /** Where the body of the next packet starts and how long it is; undefined while the header is not complete. */
  #readHeader(): { readonly start: number; readonly bodyLength: number } | undefined {
    let bodyLength = 0;
    for (let index = 1; index < FIXED_HEADER_BYTES_MAX; index++) {
      const byte = this.#pending.at(index);
      if (byte === undefined) return undefined;
      bodyLength += (byte & 0x7f) * 128 ** (index - 1);
      if ((byte & 0x80) !== 0) continue;
      if (byte === 0 && index > 1) throw malformed("the length has more bytes than it needs");
      this.#checkSize(index + 1 + bodyLength);
      return { start: index + 1, bodyLength };
    }
    throw malformed("the length has more than four bytes");
  }

  #checkSize(size: number): void {
    if (size <= this.#packetBytesMax) return;
    const limit = `at most ${this.#packetBytesMax} are accepted (mqttPacketBytesMax; a CONNECT has its own limit)`;
    throw new PacketError(PACKET_TOO_LARGE, `a packet of ${size} bytes, ${limit}`);
  }
}
