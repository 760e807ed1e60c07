import type { Duplex } from "node:stream";
import type { TimeSlices } from "../../../lib/time-slices.ts";
import { closeGraceMs } from "./limits.ts";
import type { ConnectionMemory, UnfinishedInput } from "./memory.ts";
import { Outbox } from "./outbox.ts";

/** Cuts the bytes of a client into units: packets or frames. */
export interface Cutter<Unit> {
  /** Size of the buffer, including free room. */
  readonly heldBytes: number;
  /**
   * Passes units to `take` in order: first the units that an earlier call left, then those that `chunk` completes. Stops when `take` returns false;
   * {@link resume} continues with the rest. Throws for bytes that are not a valid unit.
   */
  push(chunk: Buffer, take: (unit: Unit) => boolean): void;
  /** Passes on the units that an earlier call left. Throws as {@link push} does. */
  resume(take: (unit: Unit) => boolean): void;
  /** Frees the buffer; may be called within `take`. Neither `push` nor `resume` is called afterwards. */
  discard(): void;
}

export interface IntakeParts<Unit> {
  readonly memory: ConnectionMemory;
  /** Time slices that the connections of a listener share. Each unit is a step, since one read of a socket may bring thousands of tiny units. */
  readonly slices: TimeSlices;
  readonly cutter: Cutter<Unit>;
  /** Called before the bytes are cut; may throw. */
  readonly onBytes: (chunk: Buffer) => void;
  readonly onUnit: (unit: Unit) => void;
  /** Called when the bytes are not a valid unit, or when {@link onBytes} or {@link onUnit} threw. */
  readonly onFailed: (error: unknown) => void;
  /** Received bytes that other parts of the connection keep. */
  readonly keptBytes: () => number;
  /** Called when the client can receive more. */
  readonly onDrained: () => void;
  /** Called when the client has ended its side and every unit was handled, except those after {@link Intake.stop}. */
  readonly onEnded: () => void;
  /** Called with the stream's error when the connection broke, or without one when it was closed. */
  readonly onBroken: (error?: unknown) => void;
  /** Called when others need the memory of the unfinished input. */
  readonly onOutOfMemory: () => void;
}

/**
 * Reads units from one connection and handles them one after the other. Reads nothing more while a unit is being handled, or while the client does
 * not read its answers.
 */
export class Intake<Unit> {
  readonly outbox: Outbox;
  readonly #stream: Duplex;
  readonly #parts: IntakeParts<Unit>;
  readonly #unfinished: UnfinishedInput;
  #isClosed = false;
  /** The first error of the stream. */
  #error: unknown;
  /** Whether the client has ended its side. */
  #isEnded = false;
  #isBusy = false;
  /** Whether bytes of the client have come. */
  #hasBegun = false;
  /** Whether {@link stop} was called. */
  #isStopped = false;
  /** Whether received units wait until the client has read some of its answers. */
  #isHeldBack = false;
  /** Belongs to the unit that is being handled; see {@link leftWith}. */
  #left: AbortController | undefined;

  constructor(stream: Duplex, parts: IntakeParts<Unit>) {
    this.#stream = stream;
    this.#parts = parts;
    const { memory, onOutOfMemory } = parts;
    this.outbox = new Outbox(stream, memory.unread);
    this.#unfinished = memory.hold({ socket: stream, end: onOutOfMemory });
    stream.on("data", (chunk: Buffer) => this.#receive(chunk));
    stream.on("drain", () => this.#drained());
    stream.on("error", (error) => {
      this.#error ??= error;
      this.#inSlice(() => this.#broke());
    });
    stream.on("close", () => this.#inSlice(() => this.#broke()));
    stream.on("end", () => this.#inSlice(() => this.#ended()));
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether a unit is still being handled, or the time slice is over; later units wait. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /**
   * A signal that aborts with `socket`. While the current unit is being handled, it also aborts when the connection is closed, or when the client has ended its
   * side and sent nothing after the unit.
   */
  leftWith(socket: AbortSignal): AbortSignal {
    const left = (this.#left = new AbortController());
    if (socket.aborted) left.abort();
    else socket.addEventListener("abort", () => left.abort(), { once: true });
    return left.signal;
  }

  /** Whether the client waits for the broker, or has read bytes of a full outbox since the last call. Such a client does not count as silent. */
  isAwaited(): boolean {
    return this.#isBlocked || (!this.outbox.hasRoom && this.outbox.hasMoved());
  }

  /** Handles no further unit until `work` has ended. */
  whileBusy(work: Promise<void>, onFailed: (error: unknown) => void): void {
    this.#isBusy = true;
    work.catch(onFailed).finally(() => this.#resume());
  }

  /** Handles no further unit, but still writes. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Counts the bytes that this connection holds against the memory that connections share. */
  count(): void {
    const { cutter, keptBytes } = this.#parts;
    if (!this.#isClosed) this.#unfinished.hold(cutter.heldBytes + keptBytes());
  }

  /** Sends everything written, and ends this side. The stream closes when the client has ended its side too, or after `closeGraceMs`. */
  close(): void {
    this.#isClosed = true;
    this.#left?.abort();
    this.#unfinished.release();
    this.#parts.cutter.discard(); // the connection stays for a while, and others may need the memory now
    this.outbox.close();
    this.#stream.end();
    this.#stream.resume(); // else a client that still sends keeps the socket half open
    setTimeout(() => this.#stream.destroy(), closeGraceMs).unref();
  }

  get #isBlocked(): boolean {
    return this.#isBusy || this.#isStopped;
  }

  #receive(chunk: Buffer): void {
    if (this.#isClosed || this.#isStopped) return;
    if (this.#isBusy) return this.#putBack(chunk);
    if (this.#putsOff(chunk)) return;
    const { onBytes, cutter } = this.#parts;
    this.#handle(() => {
      onBytes(chunk);
      cutter.push(chunk, (unit) => this.#take(unit));
    });
  }

  /**
   * Defers the first bytes of a client if the time slice is over. Connections whose ends already wait for a slice go first: one of them may be the client's
   * former connection, which counts towards its quota until it has ended.
   */
  #putsOff(chunk: Buffer): boolean {
    if (this.#hasBegun) return false;
    this.#hasBegun = true;
    const pause = this.#parts.slices.pause();
    if (pause === undefined) return false;
    this.#putBack(chunk);
    this.whileBusy(pause, () => {}); // never rejects
    return true;
  }

  #putBack(chunk: Buffer): void {
    this.#stream.pause(); // Else the stream would emit the bytes again at once.
    this.#stream.unshift(chunk);
  }

  #resume(): void {
    this.#isBusy = false;
    this.#left = undefined;
    this.#handleWaiting();
  }

  /** Handles the units that wait. */
  #handleWaiting(): void {
    if (this.#isBlocked || this.#isClosed) return;
    this.#handle(() => {
      this.#isHeldBack = !this.outbox.hasRoom;
      if (!this.#isHeldBack) this.#parts.cutter.resume((unit) => this.#take(unit));
    });
    if (this.#isEnded) this.#ended();
  }

  /** Runs `work` at once, or in a later turn if the slice of this turn is used up: thousands of connections may end in one turn. */
  #inSlice(work: () => void): void {
    if (this.#isClosed) return;
    const pause = this.#parts.slices.pause();
    if (pause === undefined) work();
    else void pause.then(work);
  }

  #broke(): void {
    if (!this.#isClosed) this.#parts.onBroken(this.#error);
  }

  /** Reports the end once all earlier units are handled. */
  #ended(): void {
    this.#isEnded = true;
    const { cutter, onEnded } = this.#parts;
    if (!this.#isBusy && !this.#isHeldBack) onEnded();
    else if (cutter.heldBytes === 0) this.#left?.abort();
  }

  #handle(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#parts.onFailed(error);
    }
    if (this.#isClosed) return;
    this.count();
    if (this.#isStopped || !this.outbox.hasRoom) this.#stream.pause();
    else if (!this.#isBusy) this.#stream.resume(); // While busy, it flows until bytes come: only a flowing stream reports its client's end.
  }

  #drained(): void {
    this.outbox.count();
    this.#parts.onDrained();
    if (this.#isHeldBack) this.#handleWaiting();
    else if (!this.#isBlocked && !this.#isClosed) this.#stream.resume();
  }

  /** Handles a unit. Returns whether the next one may follow. */
  #take(unit: Unit): boolean {
    this.#parts.onUnit(unit);
    if (this.#isBlocked || this.#isClosed) return false;
    this.#isHeldBack = !this.outbox.hasRoom;
    if (this.#isHeldBack) return false;
    const pause = this.#parts.slices.pause();
    if (pause === undefined) return true;
    this.whileBusy(pause, () => {}); // never rejects
    return false;
  }
}
