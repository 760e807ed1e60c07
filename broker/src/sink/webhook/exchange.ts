import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import { AttemptError } from "./attempt-error.ts";

/** What the receiver answered. `isCut`: there was more than was read. `brokenBy`: why the rest never came. */
export interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly body: Buffer;
  readonly isCut: boolean;
  readonly brokenBy: Error | undefined;
}

/** How an exchange ended. */
export type ExchangeEnd =
  | { readonly isAnswered: true; readonly answer: Answer }
  | { readonly isAnswered: false; readonly error: Error };

/** One request and what came of it. It ends once: with the answer, at the limit of what is read, by an error or by `cancel`. */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly end: Promise<ExchangeEnd>;
  readonly #bodyBytesMax: number;
  readonly #chunks: Buffer[] = [];
  #bodyBytes = 0;
  #status: number | undefined;
  #retryAfter: string | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #cancelledBy: Error | undefined;
  #settle: (end: ExchangeEnd) => void = () => {};

  constructor(bodyBytesMax: number) {
    this.#bodyBytesMax = bodyBytesMax;
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

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#cancelledBy !== undefined) controller.abort(this.#cancelledBy);
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return; // Informational: the answer is still to come.
    this.#status = status;
    this.#retryAfter = headers["retry-after"];
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bodyBytes += chunk.length;
    if (this.#bodyBytes <= this.#bodyBytesMax) {
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
      this.#settle({ isAnswered: false, error: brokenBy ?? new AttemptError("there was no answer") });
      return;
    }
    const { status, retryAfter } = { status: this.#status, retryAfter: this.#retryAfter };
    const body = Buffer.concat(this.#chunks);
    this.#settle({ isAnswered: true, answer: { status, retryAfter, body, isCut, brokenBy } });
  }
}
