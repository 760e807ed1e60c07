import { BrokerError } from "@stele/wire";
import type { FastifyRequest, RequestPayload } from "fastify";
import type { FindHolding } from "../in-flight/in-flight.ts";
import type { EndReason, Holding } from "../in-flight/memory-budget.ts";
import { shortChunkBytes, shortChunksMax, smallBytesMax } from "../limits.ts";

/** A body that was over the limit. Node reads and drops the rest, within its request timeout, so that the client gets its answer. */
export class BodyTooLong {
  readonly bytesMax: number;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }
}

/** A body that was refused: the broker has no memory for it, it came too slowly, or its chunks cost too much. Its connection ends after the answer. */
export class BodyRefused {
  readonly details: string;
  readonly error: BrokerError;

  constructor(details: string) {
    this.details = details;
    this.error = new BrokerError("busy", { details });
  }
}

/** `request.body` as handlers get it; undefined for a request without one. */
export type RawBody = Buffer | BodyTooLong | BodyRefused | undefined;

type Done = (error: Error | null, body?: RawBody) => void;

export interface BodyCollectorOptions {
  /** Longest body, in bytes. */
  readonly bytesMax: number;
  readonly findHolding: FindHolding;
}

/** A Fastify content type parser for every type; it yields the raw bytes. */
export function createBodyCollector(options: BodyCollectorOptions) {
  return (request: FastifyRequest, payload: RequestPayload, done: Done): void => {
    const body = new BodyCollector(request, options);
    const finish = (result: RawBody): void => {
      payload.off("data", onData).off("end", onEnd);
      body.close();
      if (result instanceof BodyRefused) request.response.setHeader("connection", "close");
      done(null, result);
    };
    body.onRefused = finish;
    const onData = (chunk: Buffer): void => {
      const refusal = body.add(chunk);
      if (refusal !== undefined) finish(refusal);
    };
    const onEnd = (): void => finish(body.take());
    // An error means that the client is gone: nobody reads an answer, and there is nothing to log.
    payload.on("data", onData).on("end", onEnd).on("error", ignore);
  };
}

function ignore(): void {}

const refusals: Readonly<Record<EndReason, string>> = {
  slow: "the request's body came too slowly",
  memory: "the broker needed the memory of the request's body for requests that came faster",
};
const noRoom = new BodyRefused("the broker has no memory for a long request body at the moment");
const tooManyChunks = new BodyRefused(
  `the body has more than ${shortChunksMax} chunks of less than ${shortChunkBytes} bytes`,
);

/** Collects a body in one buffer that doubles: a list of short chunks would take many times the memory of their bytes. */
class BodyCollector {
  readonly #request: FastifyRequest;
  readonly #options: BodyCollectorOptions;
  #buffer: Buffer = Buffer.alloc(0);
  #length = 0;
  #shortChunks = 0;
  /** Bytes taken from the memory budget; 0 for a short body. */
  #counted = 0;
  #holding: Holding | undefined;
  onRefused: (refusal: BodyRefused) => void = ignore;

  constructor(request: FastifyRequest, options: BodyCollectorOptions) {
    this.#request = request;
    this.#options = options;
  }

  /** Adds a chunk. Returns why the body is refused; undefined if it is not. */
  add(chunk: Buffer): BodyTooLong | BodyRefused | undefined {
    const length = this.#length + chunk.length;
    if (length > this.#options.bytesMax) return new BodyTooLong(this.#options.bytesMax);
    if (chunk.length < shortChunkBytes && (this.#shortChunks += 1) > shortChunksMax) return tooManyChunks;
    const capacity = this.#capacityFor(length);
    if (!this.#count(capacity)) return noRoom;
    if (this.#length === 0) this.#buffer = chunk;
    else this.#append(chunk, capacity);
    this.#length = length;
    this.#holding?.moved(chunk.length);
    return undefined;
  }

  take(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  /** Call it when the body has ended or is refused: the client has no deadline any more. */
  close(): void {
    this.#holding?.awaitBroker();
  }

  #capacityFor(length: number): number {
    if (this.#length === 0 || length <= this.#buffer.length) return Math.max(length, this.#buffer.length);
    return Math.min(2 * length, this.#options.bytesMax);
  }

  #append(chunk: Buffer, capacity: number): void {
    if (capacity > this.#buffer.length) {
      const grown = Buffer.allocUnsafe(capacity);
      this.#buffer.copy(grown, 0, 0, this.#length);
      this.#buffer = grown;
    }
    chunk.copy(this.#buffer, this.#length);
  }

  /** Takes memory for a buffer of this size; returns false if there is none. A short body needs none. */
  #count(bytes: number): boolean {
    if (bytes <= smallBytesMax) return true;
    this.#holding ??= this.#beginHolding();
    const isTaken = this.#holding.tryTake(bytes - this.#counted);
    if (isTaken) this.#counted = bytes;
    else this.#holding.release();
    return isTaken;
  }

  #beginHolding(): Holding {
    const holding = this.#options.findHolding(this.#request);
    holding.awaitClient({
      socket: this.#request.raw.socket,
      end: (reason) => this.onRefused(new BodyRefused(refusals[reason])),
    });
    return holding;
  }
}
