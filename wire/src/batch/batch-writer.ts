import { type BatchEvent, encodedBytes, writeEvent } from "./encode-events.ts";
import { listBytes, RlpWriter } from "./rlp-writer.ts";

/** Room in front of the events for the header of the list, whose length is known last. */
const frontBytes = 5;
/** Up to this length the room grows fourfold, beyond it doubles. */
const shortBytes = 16_384;

/** Writes a batch while its events come in, so that each is written once, and its bytes need not be kept beside. */
export class BatchWriter {
  #writer: RlpWriter;
  /** Where each event ends. */
  readonly #ends: number[];

  constructor() {
    this.#writer = new RlpWriter(new Uint8Array(frontBytes));
    this.#writer.at = frontBytes;
    this.#ends = [];
  }

  /** Number of events. */
  get count(): number {
    return this.#ends.length;
  }

  add(event: BatchEvent): void {
    this.#reserve(encodedBytes(event));
    writeEvent(this.#writer, event);
    this.#ends.push(this.#writer.at);
  }

  /** Another writer that has the events from `from` on, up to the one before `to`. */
  slice(from: number, to: number): BatchWriter {
    const start = this.#startOf(from);
    const part = new BatchWriter();
    const events = this.#writer.bytes.subarray(start, this.#startOf(to));
    part.#reserve(events.length);
    part.#writer.raw(events);
    for (const end of this.#ends.slice(from, to)) part.#ends.push(end - start + frontBytes);
    return part;
  }

  /** The batch as `encodeEvents` writes it: a view that stays good until an event is added. */
  finish(): Uint8Array {
    const { bytes, at } = this.#writer;
    const payload = at - frontBytes;
    const first = at - listBytes(payload);
    const header = new RlpWriter(bytes);
    header.at = first;
    header.list(payload);
    return bytes.subarray(first, at);
  }

  #startOf(index: number): number {
    return index === 0 ? frontBytes : (this.#ends[index - 1] ?? this.#writer.at);
  }

  #reserve(bytes: number): void {
    const { at, bytes: old } = this.#writer;
    const needed = at + bytes;
    if (needed <= old.length) return;
    // The first event has room of its own size, since most batches hold one where topics are many.
    const factor = old.length < shortBytes ? 4 : 2;
    const grown = new Uint8Array(this.count === 0 ? needed : Math.max(needed, factor * old.length));
    grown.set(old.subarray(0, at));
    this.#writer = new RlpWriter(grown);
    this.#writer.at = at;
  }
}
