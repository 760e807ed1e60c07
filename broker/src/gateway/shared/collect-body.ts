import type { FastifyRequest, RequestPayload } from "fastify";

/** A body that was over the limit. Node reads and drops the rest, within its request timeout, so that the client gets its answer. */
export class BodyTooLong {
  readonly bytesMax: number;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }
}

/** What the server hands a handler as `request.body`; undefined for a request without one. */
export type RawBody = Buffer | BodyTooLong | undefined;

type Done = (error: Error | null, body?: RawBody) => void;

/** A Fastify content type parser for every type: the bytes as they came, up to `bodyBytesMax`. */
export function createBodyCollector(bodyBytesMax: number) {
  return (_request: FastifyRequest, payload: RequestPayload, done: Done): void => {
    const body = new BodyCollector(bodyBytesMax);
    const onData = (chunk: Buffer): void => {
      if (body.add(chunk)) return;
      payload.off("data", onData).off("end", onEnd);
      done(null, new BodyTooLong(bodyBytesMax));
    };
    const onEnd = (): void => {
      done(null, body.take());
    };
    // An error means that the client is gone: nobody reads an answer, and there is nothing to log.
    payload.on("data", onData).on("end", onEnd).on("error", ignore);
  };
}

function ignore(): void {}

class BodyCollector {
  readonly #bytesMax: number;
  #chunks: Buffer[] = [];
  #byteCount = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** False once more has come than may. */
  add(chunk: Buffer): boolean {
    this.#byteCount += chunk.length;
    if (this.#byteCount > this.#bytesMax) return false;
    this.#chunks.push(chunk);
    return true;
  }

  take(): Buffer {
    const [first] = this.#chunks;
    return first !== undefined && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks, this.#byteCount);
  }
}
