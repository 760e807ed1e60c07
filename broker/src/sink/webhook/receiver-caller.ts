import type { buildConnector } from "undici";
import { allowManyListeners, type CancelSignal } from "../../lib/cancellation.ts";
import { TimeSlices } from "../../lib/time-slices.ts";
import type { Clock } from "../../ports/clock.ts";
import { AttemptError } from "./attempt-error.ts";
import { Connection } from "./connections/connection.ts";
import {
  type ConnectionLimits,
  type ConnectionRequest,
  ConnectionPool,
  type Lease,
  type Usage,
} from "./connections/connection-pool.ts";
import { isClosedByReceiver } from "./describe-failure.ts";
import { Exchange, type ExchangeEnd } from "./exchange.ts";

export interface ReceiverCallerOptions extends ConnectionLimits {
  readonly clock: Clock;
  readonly connect: buildConnector.connector;
}

/** A request to a receiver. */
export interface Call extends ConnectionRequest {
  /** Path and query. */
  readonly path: string;
  readonly method: "POST" | "OPTIONS";
  /** Time from the connection to the end of the answer. */
  readonly timeoutMs: number;
  /** Called once the request has its connection, so that waiting requests hold no body, and the headers have the time of the attempt. */
  readonly message: () => Message;
}

export interface Message {
  readonly headers: Record<string, string>;
  readonly body: Buffer | null;
}

/** A request that has its message. */
interface Sending {
  readonly request: ReturnType<typeof toRequest>;
  readonly timeoutMs: number;
  /** The deadline, in milliseconds of the monotonic clock. */
  readonly endsAt: number;
}

export interface CallSignals {
  /** Ends the call at any stage. */
  readonly signal: CancelSignal;
  /** Ends a call that waits for its connection. */
  readonly stopping?: CancelSignal | undefined;
  /** Called once the request has its connection, and again right before the request is written. If it returns false, the request is not sent. */
  readonly mayStart?: (() => boolean) | undefined;
}

/** Maximum number of bytes to read of an answer's body; beyond it the connection is closed. */
const answerBytesMax = 65_536;
/** Maximum size of an answer's headers, in bytes. */
const answerHeaderBytesMax = 16_384;

const withheld = { kind: "withheld" } as const;
const stopped = new AttemptError("the broker is stopping");
/** Operators see this text. It names no reason, because callers may abort a call for many reasons. */
export const cancelled = new AttemptError("the broker cancelled the attempt");

/** Sends requests to receivers, within the limits per receiver and in total. */
export class ReceiverCaller {
  readonly #clock: Clock;
  readonly #pool: ConnectionPool;
  readonly #slices: TimeSlices;
  readonly #underWay = new Set<Exchange>();
  #isStopping = false;

  constructor({ connect, ...options }: ReceiverCallerOptions) {
    this.#clock = options.clock;
    this.#slices = new TimeSlices(options.clock);
    this.#pool = new ConnectionPool({
      ...options,
      open: (origin, onClosed) => new Connection(origin, { connect, headerBytesMax: answerHeaderBytesMax, onClosed }),
    });
  }

  get connectionCount(): number {
    return this.#pool.connectionCount;
  }

  get waitingCount(): number {
    return this.#pool.waitingCount;
  }

  /** Waits for a connection and then for the answer. Rejects only if `message` throws. */
  call(call: Call, signals: CallSignals): Promise<ExchangeEnd> {
    const lease = this.#pool.take(call);
    if (lease !== undefined) return this.#use(lease, call, signals);
    // Tens of thousands may wait here: a callback takes a third of the memory of an async function that waits.
    return this.#pool
      .acquire(call, toList(signals))
      .then((acquired) => (acquired === undefined ? endOfWaiting(signals) : this.#use(acquired, call, signals)));
  }

  async #use(lease: Lease, call: Call, signals: CallSignals): Promise<ExchangeEnd> {
    const { signal } = signals;
    let usage: Usage = { isReusable: false, isAnswered: undefined };
    try {
      // Making the message of a batch may take 10 ms, and hundreds of connections may be free in one turn of the event loop.
      const pause = this.#slices.pause();
      if (pause !== undefined) await pause;
      const end = this.#endBefore(signals) ?? (await this.#send(call, lease, signals));
      usage = usageOf(end, signal);
      return end;
    } finally {
      lease.release(usage);
    }
  }

  /** The result of a call that must not begin; undefined if the call may begin. */
  #endBefore(signals: CallSignals): ExchangeEnd | undefined {
    const { signal, stopping, mayStart } = signals;
    if (this.#isStopping || signal.aborted || stopping?.aborted === true) return endOfWaiting(signals);
    return mayStart?.() === false ? withheld : undefined;
  }

  /** Ends all waits. Calls in progress have `graceMs`; then it cancels them. Returns when every call has ended and the idle connections are closed. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    const closed = this.#pool.close();
    const cancelTimer = this.#clock.after(graceMs, () => {
      for (const exchange of this.#underWay) exchange.cancel(stopped);
    });
    await Promise.all([...this.#underWay].map((exchange) => exchange.end));
    cancelTimer();
    await closed;
  }

  /**
   * Sends the request. If the receiver closes a connection of earlier requests without an answer, sends the request once more, on a new connection: the
   * receiver may have closed the idle connection before it saw the request. Both attempts share one deadline.
   */
  async #send(call: Call, lease: Lease, signals: CallSignals): Promise<ExchangeEnd> {
    const { timeoutMs } = call;
    const sending = { request: toRequest(call), timeoutMs, endsAt: this.#clock.monotonic() + timeoutMs };
    const wasOpen = lease.connection.isOpen;
    const end = await this.#exchange(sending, lease, signals);
    const isClosed = end.kind === "broken" && isClosedByReceiver(end.error);
    if (!isClosed || !wasOpen || lease.connection.hasReceived || this.#endBefore(signals) !== undefined) return end;
    lease.charge();
    return this.#exchange(sending, lease, signals);
  }

  async #exchange(
    { request, timeoutMs, endsAt }: Sending,
    lease: Lease,
    { signal, mayStart }: CallSignals,
  ): Promise<ExchangeEnd> {
    const exchange = new Exchange({ bodyBytesMax: answerBytesMax, mayStart });
    const leftMs = Math.max(0, Math.ceil(endsAt - this.#clock.monotonic()));
    const cancelTimer = this.#clock.after(leftMs, () => {
      exchange.cancel(new AttemptError(`the deadline of ${timeoutMs} ms passed`));
    });
    const onAbort = (): void => exchange.cancel(cancelled);
    allowManyListeners(signal); // One signal may be shared by all attempts of the node.
    signal.addEventListener("abort", onAbort, { once: true });
    this.#underWay.add(exchange);
    try {
      lease.connection.dispatch(request, exchange);
      return await exchange.end;
    } finally {
      this.#underWay.delete(exchange);
      signal.removeEventListener("abort", onAbort);
      cancelTimer();
    }
  }
}

function toList({ signal, stopping }: CallSignals): readonly CancelSignal[] {
  return stopping === undefined ? [signal] : [signal, stopping];
}

function endOfWaiting({ signal, stopping }: CallSignals): ExchangeEnd {
  const isWithheld = !signal.aborted && stopping?.aborted === true;
  return isWithheld ? withheld : { kind: "broken", error: signal.aborted ? cancelled : stopped };
}

/** State of a connection after its request. It can carry another request after a withheld one. An aborted request says nothing about the receiver. */
function usageOf(end: ExchangeEnd, { aborted }: CancelSignal): Usage {
  if (end.kind === "withheld") return { isReusable: true, isAnswered: undefined };
  const isReusable = end.kind === "answered" && !end.answer.isCut && end.answer.brokenBy === undefined;
  return { isReusable, isAnswered: aborted ? undefined : end.kind === "answered" };
}

function toRequest({ origin, path, method, message }: Call) {
  const { headers, body } = message();
  return { origin, path, method, headers, body };
}
