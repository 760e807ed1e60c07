import type { Duplex } from "node:stream";
import type { TimeSlices } from "../../../lib/time-slices.ts";
import { closeGraceMs } from "./limits.ts";
import type { ConnectionMemory, UnfinishedInput } from "./memory.ts";
import { Outbox } from "./outbox.ts";

/** Cuts the bytes of a client into units: packets or frames. */
export interface Cutter<Unit> {
  /** Bytes that are held, with the room for more. */
  readonly heldBytes: number;
  /** Gives the units that `chunk` completes to `take`, in order, until one answers false: the rest stays for {@link resume}. Throws for bytes that are none. */
  push(chunk: Buffer, take: (unit: Unit) => boolean): void;
  /** Gives on what an earlier call left. */
  resume(take: (unit: Unit) => boolean): void;
  /** Frees what is held, also within `take`. Nothing is pushed or resumed afterwards. */
  discard(): void;
}

export interface IntakeParts<Unit> {
  readonly memory: ConnectionMemory;
  /** Of the event loop: each unit is a step. */
  readonly slices: TimeSlices;
  readonly cutter: Cutter<Unit>;
  /** Called before the bytes are cut; may throw. */
  readonly onBytes: (chunk: Buffer) => void;
  readonly onUnit: (unit: Unit) => void;
  /** The bytes are no unit, or {@link onBytes} or {@link onUnit} threw. */
  readonly onFailed: (error: unknown) => void;
  /** Received bytes that are kept elsewhere. */
  readonly keptBytes: () => number;
  /** The client takes more. */
  readonly onDrained: () => void;
  /** The client sends no more, and every unit was handled. */
  readonly onEnded: () => void;
  /** The connection broke, with the error of its stream, or the client has closed it. */
  readonly onBroken: (error?: unknown) => void;
  /** Others need the memory of what is unfinished. */
  readonly onOutOfMemory: () => void;
}

/**
 * The bytes of one connection, in both directions: handles one unit after the other, and reads nothing more while one is being handled or the client does
 * not read.
 */
export class Intake<Unit> {
  readonly outbox: Outbox;
  readonly #stream: Duplex;
  readonly #parts: IntakeParts<Unit>;
  readonly #unfinished: UnfinishedInput;
  #isClosed = false;
  /** Whether the client sends no more. */
  #isEnded = false;
  /** Whether a unit is still being handled; later ones wait. */
  #isBusy = false;
  /** Whether no further unit is taken. */
  #isStopped = false;
  /** Whether units that have come wait until the client has read some of its answers. */
  #isHeldBack = false;

  constructor(stream: Duplex, parts: IntakeParts<Unit>) {
    this.#stream = stream;
    this.#parts = parts;
    const { memory, onBroken, onOutOfMemory } = parts;
    this.outbox = new Outbox(stream, memory.unread);
    this.#unfinished = memory.hold({ socket: stream, end: onOutOfMemory });
    stream.on("data", (chunk: Buffer) => this.#receive(chunk));
    stream.on("drain", () => this.#drained());
    stream.on("error", onBroken);
    stream.on("close", () => onBroken());
    stream.on("end", () => this.#ended());
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether the client waits for the broker, or is about to take what waits for it: then it is not silent. */
  isAwaited(): boolean {
    return this.#isDeaf || (!this.outbox.hasRoom && this.outbox.hasMoved());
  }

  /** Handles no further unit until `work` has ended. */
  whileBusy(work: Promise<void>, onFailed: (error: unknown) => void): void {
    this.#isBusy = true;
    work.catch(onFailed).finally(() => this.#resume());
  }

  /** Handles nothing more, and still writes. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Counts what it keeps against what all connections share. */
  count(): void {
    const { cutter, keptBytes } = this.#parts;
    if (!this.#isClosed) this.#unfinished.hold(cutter.heldBytes + keptBytes());
  }

  /** Ends the connection once the client has what was written, or after a while. */
  close(): void {
    this.#isClosed = true;
    this.#unfinished.release();
    this.#parts.cutter.discard(); // the connection stays for a while, and others may need the memory now
    this.outbox.close();
    this.#stream.end();
    this.#stream.resume(); // else a client that still sends keeps the socket half open
    setTimeout(() => this.#stream.destroy(), closeGraceMs).unref();
  }

  get #isDeaf(): boolean {
    return this.#isBusy || this.#isStopped;
  }

  #receive(chunk: Buffer): void {
    if (this.#isClosed || this.#isStopped) return;
    const { onBytes, cutter } = this.#parts;
    this.#handle(() => {
      onBytes(chunk);
      cutter.push(chunk, (unit) => this.#take(unit));
    });
  }

  #resume(): void {
    this.#isBusy = false;
    this.#goOn();
  }

  /** Handles the units that wait. */
  #goOn(): void {
    if (this.#isDeaf || this.#isClosed) return;
    this.#handle(() => {
      this.#isHeldBack = !this.outbox.hasRoom;
      if (!this.#isHeldBack) this.#parts.cutter.resume((unit) => this.#take(unit));
    });
    if (this.#isEnded) this.#ended();
  }

  /** What the client sent before is handled first. */
  #ended(): void {
    this.#isEnded = true;
    if (!this.#isBusy && !this.#isHeldBack) this.#parts.onEnded();
  }

  #handle(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#parts.onFailed(error);
    }
    if (this.#isClosed) return;
    this.count();
    if (this.#isDeaf || !this.outbox.hasRoom) this.#stream.pause();
    else this.#stream.resume();
  }

  #drained(): void {
    this.outbox.count();
    this.#parts.onDrained();
    if (this.#isHeldBack) this.#goOn();
    else if (!this.#isDeaf && !this.#isClosed) this.#stream.resume();
  }

  /** Whether the next unit may be handled. */
  #take(unit: Unit): boolean {
    this.#parts.onUnit(unit);
    if (this.#isDeaf || this.#isClosed) return false;
    this.#isHeldBack = !this.outbox.hasRoom;
    if (this.#isHeldBack) return false;
    const pause = this.#parts.slices.pause();
    if (pause === undefined) return true;
    this.whileBusy(pause, () => {}); // never rejects
    return false;
  }
}
