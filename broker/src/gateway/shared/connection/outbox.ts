import type { Duplex } from "node:stream";
import { createDeferred, type Deferred } from "../../../lib/deferred.ts";
import { outboxBytesMax } from "./limits.ts";
import type { UnreadBytes } from "./memory.ts";

/** What leaves for a socket: all that is written in one turn goes in one write. */
export class Outbox {
  readonly #stream: Duplex;
  /** What goes with the next write, which copies it into one buffer: a write costs more than to copy many packets, and small buffers take more memory. */
  #held: Buffer[] = [];
  #heldBytes = 0;
  /** Called once the system has taken what is held. */
  #awaited: (() => void)[] = [];
  /** Writes with such calls that the system has not taken. */
  #awaitedWrites = 0;
  #settled: Deferred<void> | undefined;
  #writtenBytes = 0;
  /** Of these, what had left when {@link hasMoved} was last asked. */
  #takenBytes = 0;

  /** Of the shared bytes, those of this connection. */
  #countedBytes = 0;
  readonly #shared: UnreadBytes;

  constructor(stream: Duplex, shared: UnreadBytes) {
    this.#stream = stream;
    this.#shared = shared;
  }

  /** Whether the client keeps up; once it does again, the stream says `drain`. */
  get hasRoom(): boolean {
    const { writableLength, writableNeedDrain, writableHighWaterMark, writableEnded } = this.#stream;
    const waitingBytes = writableLength + this.#heldBytes;
    const isBehind = writableNeedDrain || this.#heldBytes >= writableHighWaterMark;
    return waitingBytes < outboxBytesMax && (this.#shared.hasRoom || !isBehind) && !writableEnded;
  }

  /** Bytes for the client so far, whether it has taken them or not. */
  get writtenBytes(): number {
    return this.#writtenBytes;
  }

  /** Whether the client has taken anything since this was last asked. */
  hasMoved(): boolean {
    const taken = this.#writtenBytes - this.#heldBytes - this.#stream.writableLength;
    const hasMoved = taken > this.#takenBytes;
    this.#takenBytes = taken;
    return hasMoved;
  }

  /** `onTaken` is called when the system has taken the bytes; never where the connection breaks before. Answers false where nothing can be written. */
  write(bytes: Buffer, onTaken?: () => void): boolean {
    if (this.#stream.writableEnded || this.#stream.destroyed) return false;
    this.#writtenBytes += bytes.length;
    if (this.#held.length === 0) process.nextTick(() => this.#writeHeld());
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
    if (onTaken !== undefined) this.#awaited.push(onTaken);
    return true;
  }

  /** Answers when no `onTaken` of what was written before {@link close} follows any more. */
  async settled(): Promise<void> {
    if (this.#awaitedWrites === 0 || this.#stream.closed) return;
    this.#settled ??= createDeferred();
    const { promise, resolve } = this.#settled;
    this.#stream.once("close", () => resolve());
    await promise;
  }

  #writeHeld(): void {
    const held = this.#held;
    const [first] = held;
    if (first === undefined || this.#stream.writableEnded || this.#stream.destroyed) return;
    this.#held = [];
    this.#heldBytes = 0;
    // A write that the system takes at once says no `drain`, for which those wait who saw no room; one from the stream's buffer does.
    this.#stream.cork();
    this.#stream.write(held.length === 1 ? first : Buffer.concat(held), this.#takeAwaited());
    this.#stream.uncork();
    if (this.#stream.writableNeedDrain) this.count();
  }

  #takeAwaited(): ((error?: Error | null) => void) | undefined {
    const awaited = this.#awaited;
    if (awaited.length === 0) return undefined;
    this.#awaited = [];
    this.#awaitedWrites += 1;
    return (error) => {
      // Node reports no error for a write that the end of the connection cut short.
      if (!(error instanceof Error) && !this.#stream.destroyed) for (const onTaken of awaited) onTaken();
      this.#awaitedWrites -= 1;
      if (this.#awaitedWrites === 0) this.#settled?.resolve();
    };
  }

  /** Counts what waits against what all connections share; to be called with each `drain` too. */
  count(): void {
    const { writableNeedDrain, writableLength } = this.#stream;
    this.#setCounted(writableNeedDrain ? writableLength : 0);
  }

  /** To be called before the stream ends: what was held goes with it, and nothing counts any more. */
  close(): void {
    this.#writeHeld();
    this.#setCounted(0);
  }

  #setCounted(bytes: number): void {
    this.#shared.add(bytes - this.#countedBytes);
    this.#countedBytes = bytes;
  }
}
