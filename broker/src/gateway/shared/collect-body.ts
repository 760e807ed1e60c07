import type { FastifyRequest, RequestPayload } from "fastify";
import { bodyDrainBytesMax } from "../limits.ts";

/** A body that was over the limit: read and dropped, so that the client gets its answer instead of a reset connection. */
export const bodyTooLong = Symbol("body too long");

/** What the server hands a handler as `request.body`; undefined for a request without one. */
export type RawBody = Buffer | typeof bodyTooLong | undefined;

type Done = (error: Error | null, body?: RawBody) => void;

/** A Fastify content type parser for every type: the bytes as they came, up to `bodyBytesMax`. */
export function createBodyCollector(bodyBytesMax: number) {
  return (_request: FastifyRequest, payload: RequestPayload, done: Done): void => {
    const body = new BodyCollector(bodyBytesMax);
    payload.on("data", (chunk: Buffer) => {
      if (!body.add(chunk)) finish(bodyTooLong);
    });
    payload.once("end", () => {
      finish(body.take());
    });
    // The client is gone: nobody reads an answer, and there is nothing to log.
    payload.once("error", () => {
      payload.removeAllListeners("data");
    });

    function finish(result: RawBody): void {
      payload.removeAllListeners("data");
      payload.removeAllListeners("end");
      done(null, result);
    }
  };
}

class BodyCollector {
  readonly #bytesMax: number;
  #chunks: Buffer[] = [];
  #byteCount = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** False once even more has come than is worth reading. */
  add(chunk: Buffer): boolean {
    this.#byteCount += chunk.length;
    if (this.#byteCount <= this.#bytesMax) this.#chunks.push(chunk);
    else this.#chunks = [];
    return this.#byteCount <= this.#bytesMax + bodyDrainBytesMax;
  }

  take(): RawBody {
    if (this.#byteCount > this.#bytesMax) return bodyTooLong;
    const [first] = this.#chunks;
    return this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks, this.#byteCount);
  }
}
