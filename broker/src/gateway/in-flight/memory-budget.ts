import type { Socket } from "node:net";
import { paceGraceMs, progressBytesPerSecondMin, progressCheckIntervalMs, progressTimeoutMs } from "../limits.ts";

/** Why a connection was ended: its client was too slow, or it was the slowest when others needed the memory. */
export type EndReason = "slow" | "memory";

/** Metrics of the budget. */
export interface InFlightMetrics {
  connectionEnded(reason: EndReason): void;
  /** `read` is asked whenever the metrics are read out. */
  watchBytesInFlight(read: () => number): void;
}

export interface MemoryBudgetOptions {
  readonly bytesMax: number;
  readonly metrics: InFlightMetrics;
}

const msPerSecond = 1000;

/**
 * Memory of long requests that are being read and of long answers that clients have not taken. Each time that a client moves bytes its
 * deadline moves on, by as much as the bytes may take and never past `progressTimeoutMs` from now. A client past its deadline is ended. When
 * memory runs out, the one with the earliest deadline is.
 */
export class MemoryBudget {
  readonly #options: MemoryBudgetOptions;
  /** Those whose clients must move something. */
  readonly #waiting = new Set<Holding>();
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: MemoryBudgetOptions) {
    this.#options = options;
    options.metrics.watchBytesInFlight(() => this.#bytes);
  }

  createHolding(): Holding {
    return new Holding({
      add: (bytes) => {
        this.#bytes += bytes;
      },
      makeRoom: (bytes, graceMs) => this.#makeRoom(bytes, graceMs),
      watch: (holding) => this.#watch(holding),
      forget: (holding) => this.#waiting.delete(holding),
    });
  }

  /** Ends a connection that has more waiting than it may. */
  endConnection(socket: Socket): void {
    socket.resetAndDestroy();
    this.#options.metrics.connectionEnded("memory");
  }

  /** False when there is not enough, and no client has been too slow for longer than `graceMs`. */
  #makeRoom(bytes: number, graceMs: number): boolean {
    const latest = performance.now() + progressTimeoutMs - graceMs;
    while (this.#bytes + bytes > this.#options.bytesMax) {
      const slowest = this.#findSlowest();
      if (slowest === undefined || slowest.deadline > latest) return false;
      this.#end(slowest, "memory");
    }
    return true;
  }

  #findSlowest(): Holding | undefined {
    let slowest: Holding | undefined;
    for (const holding of this.#waiting) {
      if (slowest === undefined || holding.deadline < slowest.deadline) slowest = holding;
    }
    return slowest;
  }

  #end(holding: Holding, reason: EndReason): void {
    if (holding.end(reason)) this.#options.metrics.connectionEnded(reason);
  }

  #watch(holding: Holding): void {
    this.#waiting.add(holding);
    this.#timer ??= setInterval(() => this.#check(), progressCheckIntervalMs).unref();
  }

  #check(): void {
    const now = performance.now();
    for (const holding of this.#waiting) if (holding.isLate(now)) this.#end(holding, "slow");
    if (this.#waiting.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** A client that has to send or read bytes. */
export interface Client {
  readonly socket: Pick<Socket, "destroyed">;
  /** Called once, when it has been too slow. */
  end(reason: EndReason): void;
  /** Whether it is excused though its time is over. */
  isExcused?(): boolean;
}

interface HoldingOptions {
  readonly add: (bytes: number) => void;
  readonly makeRoom: (bytes: number, graceMs: number) => boolean;
  readonly watch: (holding: Holding) => void;
  readonly forget: (holding: Holding) => void;
}

/** The memory of one request and its answer. */
export class Holding {
  readonly #options: HoldingOptions;
  #bytes = 0;
  #deadline = 0;
  #client: Client | undefined;
  #isReleased = false;

  constructor(options: HoldingOptions) {
    this.#options = options;
  }

  /** When the client must have moved something; on the monotonic clock. */
  get deadline(): number {
    return this.#deadline;
  }

  /** Takes memory where there is some, or where clients that do not keep the pace can be ended for it. */
  tryTake(bytes: number): boolean {
    if (this.#isReleased) return true;
    if (!this.#options.makeRoom(bytes, paceGraceMs)) return false;
    this.#add(bytes);
    return true;
  }

  /** Takes memory that is in use already; the slowest clients are ended for it where that is needed. */
  take(bytes: number): void {
    // For a connection that has ended, nobody else may be.
    if (this.#isReleased) return;
    this.#options.makeRoom(bytes, 0);
    this.#add(bytes);
  }

  /** From now on it is the client's turn. */
  awaitClient(client: Client): void {
    if (this.#isReleased) return;
    this.#client = client;
    this.#deadline = performance.now() + progressTimeoutMs;
    this.#options.watch(this);
  }

  /** Whether the client's time is over; it has more where it was not its turn. */
  isLate(now: number): boolean {
    if (this.#deadline >= now) return false;
    if (this.#client?.isExcused?.() !== true) return true;
    this.#deadline = now + progressTimeoutMs;
    return false;
  }

  /** The client has sent or taken bytes. */
  moved(bytes: number): void {
    const earned = this.#deadline + (bytes * msPerSecond) / progressBytesPerSecondMin;
    this.#deadline = Math.min(earned, performance.now() + progressTimeoutMs);
  }

  /** From now on it is the broker's turn. */
  awaitBroker(): void {
    this.#client = undefined;
    this.#options.forget(this);
  }

  /** False when the connection had ended already. */
  end(reason: EndReason): boolean {
    const client = this.#client;
    this.release();
    if (client === undefined || client.socket.destroyed) return false;
    client.end(reason);
    return true;
  }

  /** Gives back everything; afterwards it holds nothing any more. */
  release(): void {
    this.awaitBroker();
    this.#add(-this.#bytes);
    this.#isReleased = true;
  }

  #add(bytes: number): void {
    if (this.#isReleased) return;
    this.#bytes += bytes;
    this.#options.add(bytes);
  }
}
