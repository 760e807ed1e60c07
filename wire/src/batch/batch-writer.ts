import { listBytes, RlpWriter } from "@stele/eth";
import { type BatchEvent, encodedBytes, writeEvent } from "./encode-events.ts";

/** Bytes before the events for the list header, whose length is known only at the end. */
const frontBytes = 5;
/** A buffer below this size grows fourfold, a larger one twofold. */
const shortBytes = 16_384;
/** The buffer of a writer without events. Only the header of an empty list is ever written to it. */
const noEvents = new Uint8Array(frontBytes);
/**
 * With many topics most batches have one short event. Short buffers are parts of a shared buffer, since V8 takes longer to allocate an `ArrayBuffer` than the
 * rest of the batch takes. The shared buffer is small, since any part of it keeps all of it in memory.
 */
const shared = { bytes: new Uint8Array(0), at: 0, partMax: 512, size: 4_096 };

/** Encodes a batch event by event, so that each event is written once and the caller need not keep its bytes. */
export class BatchWriter {
  #writer: RlpWriter;
  /** End offset of each event. */
  #ends: number[];

  constructor() {
    this.#writer = new RlpWriter(noEvents);
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
    this.#end();
  }

  /** Returns another writer with the events from `from` up to, but not including, `to`. */
  slice(from: number, to: number): BatchWriter {
    const start = this.#startOf(from);
    const part = new BatchWriter();
    const events = this.#writer.bytes.subarray(start, this.#startOf(to));
    part.#reserve(events.length);
    part.#writer.raw(events);
    for (const end of this.#ends.slice(from, to)) part.#ends.push(end - start + frontBytes);
    return part;
  }

  /** Returns another writer with the events for whose index `isKept` returns true. */
  pick(isKept: (index: number) => boolean): BatchWriter {
    const kept = new BatchWriter();
    for (const [index, end] of this.#ends.entries()) {
      if (isKept(index)) kept.#copy(this.#writer.bytes.subarray(this.#startOf(index), end));
    }
    return kept;
  }

  /** The batch as `encodeEvents` writes it: a view that stays valid until the next event is added. */
  finish(): Uint8Array {
    const { bytes, at } = this.#writer;
    const payload = at - frontBytes;
    const first = at - listBytes(payload);
    const header = new RlpWriter(bytes);
    header.at = first;
    header.list(payload);
    return bytes.subarray(first, at);
  }

  #copy(event: Uint8Array): void {
    this.#reserve(event.length);
    this.#writer.raw(event);
    this.#end();
  }

  /** Records where the event just written ends. Avoids a first `push`, which allocates 17 slots: with many topics most batches have one event. */
  #end(): void {
    if (this.count === 0) this.#ends = [this.#writer.at];
    else this.#ends.push(this.#writer.at);
  }

  #startOf(index: number): number {
    return index === 0 ? frontBytes : (this.#ends[index - 1] ?? this.#writer.at);
  }

  #reserve(bytes: number): void {
    const { at, bytes: old } = this.#writer;
    const needed = at + bytes;
    if (needed <= old.length) return;
    const factor = old.length < shortBytes ? 4 : 2;
    // The first buffer has no spare room, since with many topics most batches have one event.
    const grown = takeBytes(this.count === 0 ? needed : Math.max(needed, factor * old.length));
    if (this.count > 0) grown.set(old.subarray(0, at));
    this.#writer = new RlpWriter(grown);
    this.#writer.at = at;
  }
}

/** Returns bytes that no other caller has. */
function takeBytes(length: number): Uint8Array {
  if (length > shared.partMax) return new Uint8Array(length);
  if (shared.at + length > shared.bytes.length) {
    shared.bytes = new Uint8Array(shared.size);
    shared.at = 0;
  }
  shared.at += length;
  return shared.bytes.subarray(shared.at - length, shared.at);
}
