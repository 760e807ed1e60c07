import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import { AttemptError } from "./attempt-error.ts";

/** What the receiver answered. `isCut`: there was more than was read. `brokenBy`: why the rest never came. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly isCut: boolean;
  readonly brokenBy: Error | undefined;
}

/** How an exchange ended. `withheld`: it was not allowed to start. */
export type ExchangeEnd =
  | { readonly kind: "answered"; readonly answer: Answer }
  | { readonly kind: "broken"; readonly error: Error }
  | { readonly kind: "withheld" };

export interface ExchangeOptions {
  /** Bytes of the answer that are read. */
  readonly bodyBytesMax: number;
  /** Asked in the turn in which the request is written to its connection. */
  readonly mayStart: (() => boolean) | undefined;
}

/** One request and what came of it. It ends once: with the answer, at the limit of what is read, by an error or by `cancel`. */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly end: Promise<ExchangeEnd>;
  readonly #options: ExchangeOptions;
  readonly #chunks: Buffer[] = [];
  #bodyBytes = 0;
  #status: number | undefined;
  #headers: IncomingHttpHeaders = {};
  #controller: Dispatcher.DispatchController | undefined;
  #cancelledBy: Error | undefined;
  #settle: (end: ExchangeEnd) => void = () => {};

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.end = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  /** Ends the exchange and drops its connection. A request that still waits for one is never sent. */
  cancel(error: Error): void {
    this.#cancelledBy ??= error;
    this.#endWith({ isCut: false, brokenBy: error });
    this.#controller?.abort(error);
  }

  /** Right after this, the request is written. Throwing keeps it back and leaves the connection to the next one; `abort` would close it. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#cancelledBy !== undefined) throw this.#cancelledBy;
    if (this.#options.mayStart?.() === false) {
      this.#settle({ kind: "withheld" });
      throw new AttemptError("it may not be sent any more");
    }
    this.#controller = controller;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return; // Informational: the answer is still to come.
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bodyBytes += chunk.length;
    if (this.#bodyBytes <= this.#options.bodyBytesMax) {
      this.#chunks.push(chunk);
      return;
    }
    this.#endWith({ isCut: true, brokenBy: undefined });
    controller.abort(new AttemptError("the answer is too long"));
  }

  onResponseEnd(): void {
    this.#endWith({ isCut: false, brokenBy: undefined });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#endWith({ isCut: false, brokenBy: error });
  }

  /** Only the first call has an effect. */
  #endWith({ isCut, brokenBy }: Pick<Answer, "isCut" | "brokenBy">): void {
    if (this.#status === undefined) {
      this.#settle({ kind: "broken", error: brokenBy ?? new AttemptError("there was no answer") });
      return;
    }
    const { status, headers } = { status: this.#status, headers: this.#headers };
    const body = Buffer.concat(this.#chunks);
    this.#settle({ kind: "answered", answer: { status, headers, body, isCut, brokenBy } });
  }
}
