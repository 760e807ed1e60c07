import { allowManyListeners, type CancelSignal } from "../../../lib/cancellation.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Connection } from "./connection.ts";
import { Lane, type Waiter } from "./lane.ts";
import { ReadyLanes } from "./ready-lanes.ts";

export interface ConnectionLimits {
  /** Maximum number of connections to one receiver. */
  readonly connectionsMax: number;
  /** Maximum number of connections to all receivers. */
  readonly connectionsTotalMax: number;
  /** Request bytes per second to one receiver. */
  readonly bytesPerSecondMax: number;
}

export interface ConnectionPoolOptions extends ConnectionLimits {
  readonly clock: Pick<Clock, "monotonic" | "after">;
  /** Opens a connection, and calls `onClosed` when its socket closes. */
  readonly open: (origin: string, onClosed: (connection: Connection) => void) => Connection;
}

/** A request's needs. */
export interface ConnectionRequest {
  readonly origin: string;
  readonly bytes: number;
  /** The rate that a receiver granted. It applies to one url, which has its own lane. */
  readonly rate?: { readonly url: string; readonly requestsPerMinuteMax: number } | undefined;
}

/** State of a connection after its request. */
export interface Usage {
  /** Whether it can carry another request. */
  readonly isReusable: boolean;
  /** Whether the receiver answered; undefined if the request was not sent, or its caller aborted it. */
  readonly isAnswered: boolean | undefined;
}

/** A connection for one request. */
export interface Lease {
  readonly connection: Connection;
  /** Charges the request to the receiver's rate limits again. Call it before sending the request a second time. */
  charge(): void;
  /** Call it once. */
  release(usage: Usage): void;
}

/** Maximum number of idle receivers to remember: whether they answer, and how much was sent to them. */
const unusedLanesMax = 10_000;

/** Requests with the same key wait for each other. */
export function laneKeyOf({ origin, rate }: Pick<ConnectionRequest, "origin" | "rate">): string {
  return rate === undefined ? origin : `${rate.requestsPerMinuteMax} ${rate.url}`;
}

/**
 * Hands out connections within the limits. Requests to one receiver stay in order, and receivers take turns (see {@link ReadyLanes}). If there is no
 * room, closes the connection that was idle for longest.
 */
export class ConnectionPool {
  readonly #options: ConnectionPoolOptions;
  readonly #ready: ReadyLanes;
  readonly #lanes = new Map<string, Lane>();
  /** Unused lanes, least recently used first. */
  readonly #unused = new Set<Lane>();
  /** Idle connections, least recently used first. */
  readonly #idle = new Map<Connection, Lane>();
  #inUse = 0;
  #waiting = 0;
  #isClosed = false;

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
    this.#ready = new ReadyLanes(options.connectionsTotalMax);
  }

  /** Connections that are open or being opened. */
  get connectionCount(): number {
    return this.#inUse + this.#idle.size;
  }

  get waitingCount(): number {
    return this.#waiting;
  }

  /** A connection that is available at once; undefined if there is none. */
  take(request: ConnectionRequest): Lease | undefined {
    if (this.#isClosed || this.#inUse >= this.#options.connectionsTotalMax) return undefined;
    const lane = this.#laneOf(request);
    const now = this.#options.clock.monotonic();
    const mustWait = lane.waiting.size > 0 || lane.inUse >= this.#options.connectionsMax || lane.delayMs(now) > 0;
    if (mustWait || !this.#ready.mayPass(lane)) return undefined;
    this.#unused.delete(lane);
    lane.charge(request.bytes, now);
    return this.#lend(lane, request.bytes);
  }

  /** Waits for a connection; undefined if one of the signals aborts first, or the pool is closed. */
  acquire(request: ConnectionRequest, signals: readonly CancelSignal[]): Promise<Lease | undefined> {
    if (this.#isClosed || signals.some(({ aborted }) => aborted)) return Promise.resolve(undefined);
    const lane = this.#laneOf(request);
    return new Promise((resolve) => {
      const settle = (lease: Lease | undefined): void => {
        this.#waiting -= 1;
        for (const signal of signals) signal.removeEventListener("abort", abandon);
        resolve(lease);
      };
      const abandon = (): void => {
        lane.waiting.delete(waiter);
        this.#enlist(lane);
        settle(undefined);
      };
      const waiter: Waiter = { bytes: request.bytes, abandon, grant: () => settle(this.#lend(lane, request.bytes)) };
      this.#waiting += 1;
      lane.waiting.add(waiter);
      this.#enlist(lane);
      this.#pump();
      if (!lane.waiting.has(waiter)) return;
      for (const signal of signals) {
        allowManyListeners(signal); // One signal may be shared by all attempts of the node.
        signal.addEventListener("abort", abandon, { once: true });
      }
    });
  }

  /** Ends all waits, and closes every idle connection. Connections in use close when they are released. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const lane of this.#lanes.values()) for (const waiter of lane.waiting) waiter.abandon();
    await Promise.all([...this.#idle.keys()].map((connection) => this.#discard(connection)));
  }

  #laneOf({ origin, rate }: ConnectionRequest): Lane {
    const key = laneKeyOf({ origin, rate });
    const known = this.#lanes.get(key);
    if (known !== undefined) return known;
    const { bytesPerSecondMax } = this.#options;
    const lane = new Lane({ key, origin, bytesPerSecondMax, requestsPerMinuteMax: rate?.requestsPerMinuteMax });
    this.#lanes.set(key, lane);
    this.#rest(lane);
    return lane;
  }

  /** Moves a lane to its place after a change: ready, on a timer, or unused. */
  #enlist(lane: Lane): void {
    lane.cancelTimer?.();
    lane.cancelTimer = undefined;
    this.#unused.delete(lane);
    const { clock, connectionsMax } = this.#options;
    const mayGo = lane.waiting.size > 0 && lane.inUse < connectionsMax;
    const delayMs = mayGo ? lane.delayMs(clock.monotonic()) : 0;
    if (mayGo && delayMs === 0) this.#ready.add(lane);
    else this.#ready.remove(lane);
    if (delayMs > 0) lane.cancelTimer = clock.after(Math.ceil(delayMs), () => this.#goOn(lane));
    if (lane.waiting.size === 0 && lane.inUse === 0) this.#rest(lane);
  }

  #goOn(lane: Lane): void {
    this.#enlist(lane);
    this.#pump();
  }

  #rest(lane: Lane): void {
    this.#unused.add(lane);
    const [oldest] = this.#unused;
    if (this.#unused.size <= unusedLanesMax || oldest === undefined) return;
    this.#unused.delete(oldest);
    this.#lanes.delete(oldest.key);
    for (const connection of oldest.idle.splice(0)) void this.#discard(connection);
  }

  #pump(): void {
    while (this.#inUse < this.#options.connectionsTotalMax) {
      const lane = this.#ready.next();
      const waiter = lane?.takeFirst(this.#options.clock.monotonic());
      if (lane === undefined || waiter === undefined) return;
      this.#ready.remove(lane);
      waiter.grant();
      this.#enlist(lane);
    }
  }

  #connect(lane: Lane): Connection {
    const idle = lane.idle.pop();
    if (idle !== undefined) {
      this.#idle.delete(idle);
      return idle;
    }
    const [longestIdle] = this.#idle.keys();
    const isFull = this.connectionCount > this.#options.connectionsTotalMax; // The new one is already counted.
    if (isFull && longestIdle !== undefined) void this.#discard(longestIdle);
    return this.#options.open(lane.origin, (closed) => {
      if (this.#idle.has(closed)) void this.#discard(closed);
    });
  }

  #lend(lane: Lane, bytes: number): Lease {
    const { health } = lane;
    this.#inUse += 1;
    lane.inUse += 1;
    this.#ready.begin(health);
    const connection = this.#connect(lane);
    return {
      connection,
      charge: () => lane.charge(bytes, this.#options.clock.monotonic()),
      release: ({ isReusable, isAnswered }) => {
        this.#inUse -= 1;
        lane.inUse -= 1;
        this.#ready.end(health);
        if (isAnswered !== undefined) lane.health = isAnswered ? "proven" : "failing";
        if (isReusable && connection.isOpen && !this.#isClosed) {
          lane.idle.push(connection);
          this.#idle.set(connection, lane);
        } else void connection.close();
        this.#goOn(lane);
      },
    };
  }

  async #discard(connection: Connection): Promise<void> {
    const lane = this.#idle.get(connection);
    this.#idle.delete(connection);
    lane?.idle.splice(lane.idle.indexOf(connection), 1);
    await connection.close();
  }
}
