import type { Dispatcher } from "undici";
import { notHttp } from "../../lib/network-failure.ts";
import { AttemptError } from "./attempt-error.ts";
import { switchesProtocols } from "./describe-failure.ts";

/** By lower-case name. A repeated header has an array of values. */
export type AnswerHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/** The receiver's answer. `isCut`: reading stopped at a limit. `brokenBy`: why the rest never arrived. */
export interface Answer {
  readonly status: number;
  readonly headers: AnswerHeaders;
  readonly body: Buffer;
  readonly isCut: boolean;
  readonly brokenBy: Error | undefined;
}

/** Result of an exchange. `withheld`: it was not allowed to start. */
export type ExchangeEnd =
  | { readonly kind: "answered"; readonly answer: Answer }
  | { readonly kind: "broken"; readonly error: Error }
  | { readonly kind: "withheld" };

export interface ExchangeOptions {
  /** Maximum number of answer bytes to read. */
  readonly bodyBytesMax: number;
  /** Called right before the request is written to its connection. If it returns false, the request is not sent. */
  readonly mayStart: (() => boolean) | undefined;
}

/** Maximum number of informational answers and body pieces to read per answer. */
const partsMax = 1024;

const noBytes = Buffer.alloc(0);

/** One request and its result. It ends once: with the answer, at a read limit, by an error, by `cancel`, or unsent because `mayStart` returned false. */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly end: Promise<ExchangeEnd>;
  readonly #options: ExchangeOptions;
  #body = noBytes;
  #bodyBytes = 0;
  #parts = 0;
  #status: number | undefined;
  #headers: AnswerHeaders = {};
  #controller: Dispatcher.DispatchController | undefined;
  #cancelledBy: Error | undefined;
  #settle: (end: ExchangeEnd) => void = () => {};

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.end = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  /** Ends the exchange and closes its connection. A request that still waits for its connection is never sent. */
  cancel(error: Error): void {
    this.#cancelledBy ??= error;
    this.#endWith({ isCut: false, brokenBy: error });
    this.#controller?.abort(error);
  }

  /** undici writes the request right after this call. Throwing prevents that and keeps the connection usable; `abort` would close it. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#cancelledBy !== undefined) throw this.#cancelledBy;
    if (this.#options.mayStart?.() === false) {
      this.#settle({ kind: "withheld" });
      throw new AttemptError("it may not be sent any more");
    }
    this.#controller = controller;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: AnswerHeaders): void {
    if (this.#hasTooManyParts(controller)) return;
    // undici fails an assertion after either of these two statuses.
    if (status < 100) return this.#cut(controller, notHttp); // RFC 9110, section 15
    if (status === 101) return this.#cut(controller, switchesProtocols);
    if (status < 200) return; // Informational: the answer is still to come.
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#hasTooManyParts(controller)) return;
    const bytes = this.#bodyBytes + chunk.length;
    if (bytes > this.#options.bodyBytesMax) this.#cut(controller, "the answer is too long");
    else this.#append(chunk, bytes);
  }

  onResponseEnd(): void {
    this.#endWith({ isCut: false, brokenBy: undefined });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#endWith({ isCut: false, brokenBy: error });
  }

  /** Counts informational answers and body pieces: each costs a call, however small it is. */
  #hasTooManyParts(controller: Dispatcher.DispatchController): boolean {
    this.#parts += 1;
    if (this.#parts <= partsMax) return false;
    this.#cut(controller, "the answer came in too many parts");
    return true;
  }

  /** Stops reading. An answer whose status is known still counts as an answer. */
  #cut(controller: Dispatcher.DispatchController, reason: string): void {
    const error = new AttemptError(reason);
    this.#endWith({ isCut: true, brokenBy: this.#status === undefined ? error : undefined });
    controller.abort(error);
  }

  /** Copies a piece: keeping the piece itself would keep the whole read buffer, 64 KiB for one byte. */
  #append(chunk: Buffer, bytes: number): void {
    if (bytes > this.#body.length) {
      const body = Buffer.alloc(Math.min(Math.max(bytes, 2 * this.#body.length), this.#options.bodyBytesMax));
      this.#body.copy(body);
      this.#body = body;
    }
    chunk.copy(this.#body, this.#bodyBytes);
    this.#bodyBytes = bytes;
  }

  /** Only the first call has an effect. */
  #endWith({ isCut, brokenBy }: Pick<Answer, "isCut" | "brokenBy">): void {
    if (this.#status === undefined) {
      this.#settle({ kind: "broken", error: brokenBy ?? new AttemptError("there was no answer") });
      return;
    }
    const { status, headers } = { status: this.#status, headers: this.#headers };
    const body = this.#bodyBytes === 0 ? noBytes : this.#body.subarray(0, this.#bodyBytes);
    this.#settle({ kind: "answered", answer: { status, headers, body, isCut, brokenBy } });
  }
}
