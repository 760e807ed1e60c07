import type { Duplex } from "node:stream";
import { createDeferred, type Deferred } from "../../../lib/deferred.ts";
import { outboxBytesMax } from "./limits.ts";
import type { UnreadBytes } from "./memory.ts";

/** Output of a socket. Joins everything that one callback of the event loop writes into one write. */
export class Outbox {
  readonly #stream: Duplex;
  /** Bytes for the next write, which copies them into one buffer: several writes cost more than copying many packets, and small buffers take more memory. */
  #held: Buffer[] = [];
  #heldBytes = 0;
  /** Called once the system has taken the held bytes. */
  #awaited: (() => void)[] = [];
  /** Writes with `onAccepted` callbacks that the system has not taken yet. */
  #awaitedWrites = 0;
  #settled: Deferred<void> | undefined;
  #writtenBytes = 0;
  /** How many of the written bytes had left at the last call of {@link hasMoved}. */
  #takenBytes = 0;

  /** This connection's part of the shared bytes. */
  #countedBytes = 0;
  readonly #shared: UnreadBytes;

  constructor(stream: Duplex, shared: UnreadBytes) {
    this.#stream = stream;
    this.#shared = shared;
  }

  /** Whether the client keeps up, and the stream has not ended. When the client catches up again, the stream emits `drain`. */
  get hasRoom(): boolean {
    const { writableLength, writableNeedDrain, writableHighWaterMark, writableEnded } = this.#stream;
    const waitingBytes = writableLength + this.#heldBytes;
    const isBehind = writableNeedDrain || this.#heldBytes >= writableHighWaterMark;
    return waitingBytes < outboxBytesMax && (this.#shared.hasRoom || !isBehind) && !writableEnded;
  }

  /** Bytes written so far, whether the client has read them or not. */
  get writtenBytes(): number {
    return this.#writtenBytes;
  }

  /** Whether the client has read anything since the last call. */
  hasMoved(): boolean {
    const taken = this.#writtenBytes - this.#heldBytes - this.#stream.writableLength;
    const hasMoved = taken > this.#takenBytes;
    this.#takenBytes = taken;
    return hasMoved;
  }

  /** Returns false if the stream has ended or is destroyed. Calls `onAccepted` when the system has accepted the bytes; never if the connection breaks first. */
  write(bytes: Buffer, onAccepted?: () => void): boolean {
    if (this.#stream.writableEnded || this.#stream.destroyed) return false;
    this.#writtenBytes += bytes.length;
    if (this.#held.length === 0) process.nextTick(() => this.#writeHeld());
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
    if (onAccepted !== undefined) this.#awaited.push(onAccepted);
    return true;
  }

  /** Resolves when no more `onAccepted` of the writes so far will be called. */
  async settled(): Promise<void> {
    this.#writeHeld();
    if (this.#awaitedWrites === 0 || this.#stream.closed) return;
    if (this.#settled === undefined) {
      const { resolve } = (this.#settled = createDeferred());
      this.#stream.once("close", () => resolve());
    }
    await this.#settled.promise;
  }

  #writeHeld(): void {
    const held = this.#held;
    const [first] = held;
    if (first === undefined || this.#stream.writableEnded || this.#stream.destroyed) return;
    this.#held = [];
    this.#heldBytes = 0;
    // Cork makes the bytes pass through the stream's buffer, so that `drain` follows: callers that saw no room wait for it. An uncorked write that
    // the system takes at once emits no `drain`.
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
      // Node reports no error for a write that the end of the connection interrupted.
      if (!(error instanceof Error) && !this.#stream.destroyed) for (const onAccepted of awaited) onAccepted();
      this.#awaitedWrites -= 1;
      if (this.#awaitedWrites > 0) return;
      this.#settled?.resolve();
      this.#settled = undefined;
    };
  }

  /** Counts the waiting bytes against those that connections share. Call it at each `drain` too. */
  count(): void {
    const { writableNeedDrain, writableLength } = this.#stream;
    this.#setCounted(writableNeedDrain ? writableLength : 0);
  }

  /** Writes the held bytes and stops counting. Call it before the stream ends. */
  close(): void {
    this.#writeHeld();
    this.#setCounted(0);
  }

  #setCounted(bytes: number): void {
    this.#shared.add(bytes - this.#countedBytes);
    this.#countedBytes = bytes;
  }
}
