import type { Socket } from "node:net";
import { resetConnection } from "../shared/reset-connection.ts";
import { paceGraceMs, progressBytesPerSecondMin, progressCheckIntervalMs, progressTimeoutMs } from "../limits.ts";

/**
 * Why the budget ended a connection. `slow`: its client was too slow. `memory`: its client was the slowest when others needed the memory, or sent a request
 * that could neither run nor wait.
 */
export type EndReason = "slow" | "memory";

/** Metrics of the budget. */
export interface InFlightMetrics {
  connectionEnded(reason: EndReason): void;
  /** `read` is called at each scrape of the metrics. */
  watchBytesInFlight(read: () => number): void;
}

export interface MemoryBudgetOptions {
  readonly bytesMax: number;
  readonly metrics: InFlightMetrics;
}

const msPerSecond = 1000;

/**
 * Bounds the memory of long requests that are arriving and of long answers that clients have not read. Bytes that a client moves extend its
 * deadline by the time they take at the minimum rate, to at most `progressTimeoutMs` from now. A client past its deadline is disconnected. When
 * memory runs out, the client with the earliest deadline is disconnected.
 */
export class MemoryBudget {
  readonly #options: MemoryBudgetOptions;
  /** Holdings that wait for their clients. */
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

  /** Ends a connection whose next request can neither run nor wait. */
  endConnection(socket: Socket): void {
    resetConnection(socket);
    this.#options.metrics.connectionEnded("memory");
  }

  /** Disconnects the slowest clients until `bytes` fit. False if the remaining clients all moved bytes within `graceMs`. */
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
  /** Called at most once, when the budget disconnects the client. */
  end(reason: EndReason): void;
  /** Whether the client could not move bytes, so that it gets a new deadline. */
  isExcused?(): boolean;
}

interface HoldingOptions {
  readonly add: (bytes: number) => void;
  readonly makeRoom: (bytes: number, graceMs: number) => boolean;
  readonly watch: (holding: Holding) => void;
  readonly forget: (holding: Holding) => void;
}

/** Memory of the budget that one request with its answer, or one unfinished message, takes. */
export class Holding {
  readonly #options: HoldingOptions;
  #bytes = 0;
  #deadline = 0;
  #client: Client | undefined;
  #isReleased = false;

  constructor(options: HoldingOptions) {
    this.#options = options;
  }

  /** By when the client must move bytes, in milliseconds of the monotonic clock. */
  get deadline(): number {
    return this.#deadline;
  }

  /** Takes memory if it is free, or if disconnecting slow clients frees it; false otherwise. After `release`, true without taking any. */
  tryTake(bytes: number): boolean {
    if (this.#isReleased) return true;
    if (!this.#options.makeRoom(bytes, paceGraceMs)) return false;
    this.#add(bytes);
    return true;
  }

  /** Counts memory that is already in use, and disconnects the slowest clients if that exceeds the budget. */
  take(bytes: number): void {
    // A connection that has ended must not cost other connections theirs.
    if (this.#isReleased) return;
    this.#options.makeRoom(bytes, 0);
    this.#add(bytes);
  }

  /**
   * Counts memory that is already in use, but disconnects only clients that moved nothing for `paceGraceMs`. So bytes over the budget stay counted until
   * the clients have read their answers, or are slow.
   */
  takeLate(bytes: number): void {
    if (this.#isReleased) return;
    this.#options.makeRoom(bytes, paceGraceMs);
    this.#add(bytes);
  }

  /** From now on the client must move bytes before its deadline. */
  awaitClient(client: Client): void {
    if (this.#isReleased) return;
    this.#client = client;
    this.#deadline = performance.now() + progressTimeoutMs;
    this.#options.watch(this);
  }

  /** Whether the client is past its deadline. An excused client gets a new one. */
  isLate(now: number): boolean {
    if (this.#deadline >= now) return false;
    if (this.#client?.isExcused?.() !== true) return true;
    this.#deadline = now + progressTimeoutMs;
    return false;
  }

  /** The client has sent or read bytes. */
  moved(bytes: number): void {
    const earned = this.#deadline + (bytes * msPerSecond) / progressBytesPerSecondMin;
    this.#deadline = Math.min(earned, performance.now() + progressTimeoutMs);
  }

  /** From now on the broker works, and the client has no deadline. */
  awaitBroker(): void {
    this.#client = undefined;
    this.#options.forget(this);
  }

  /** Releases the memory and disconnects the client. False if there is no client to wait for, or if its connection had already ended. */
  end(reason: EndReason): boolean {
    const client = this.#client;
    this.release();
    if (client === undefined || client.socket.destroyed) return false;
    client.end(reason);
    return true;
  }

  /** Gives back all memory. Later calls take none. */
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
