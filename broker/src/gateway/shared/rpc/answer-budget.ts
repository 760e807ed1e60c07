import type { AnswerStream } from "../../in-flight/answer-stream.ts";
import type { Holding } from "../../in-flight/memory-budget.ts";
import { rpcShortErrorBytesMax, smallBytesMax } from "../../limits.ts";
import type { RpcEndpoint } from "./endpoint.ts";
import { type RpcError, renderResponse, type RpcId, type RpcOutcome, type RpcText, toResponse } from "./message.ts";

const noMemory =
  "the broker has no memory for a longer answer at the moment; this member was not run, or it changed nothing";

export interface AnswerBudgetOptions {
  /** Called with each error of the answer. */
  readonly onError: (error: RpcError) => void;
  /** Finds the holding that counts the memory of a batch; left out for a single request. */
  readonly findHolding?: () => Holding;
}

/** Room left for the responses of one answer. */
export class AnswerBudget {
  readonly #endpoint: RpcEndpoint;
  readonly #options: AnswerBudgetOptions;
  #bytes = 0;
  #counted = 0;
  #refusal: RpcError | undefined;

  constructor(endpoint: RpcEndpoint, options: AnswerBudgetOptions) {
    this.#endpoint = endpoint;
    this.#options = options;
  }

  /** Whether a result did not fit. Members that have not started yet are then not run, except notifications. */
  get isExceeded(): boolean {
    return this.#refusal !== undefined;
  }

  /** The response to a member that was not run because an earlier result did not fit. */
  toRefusal(id: RpcId): string {
    return this.#renderError(id, this.#refusal ?? this.#endpoint.answerLimit.error);
  }

  /** The response as JSON, with an error in place of a result that does not fit. */
  render(id: RpcId, outcome: RpcOutcome | RpcText): string {
    if ("error" in outcome) this.#options.onError(outcome.error);
    const text = renderResponse(id, outcome);
    const bytes = Buffer.byteLength(text);
    const refusal = this.#isShort(outcome, text) ? undefined : this.#refuse(bytes);
    if (refusal === undefined) {
      this.#bytes += bytes;
      return text;
    }
    this.#refusal ??= refusal;
    return this.#renderError(id, refusal);
  }

  /** Counts the memory of the finished answer; until then only that of long results is counted. */
  countAnswer({ bytes, holding }: AnswerStream): void {
    if (bytes > this.#counted) holding.takeLate(bytes - this.#counted);
  }

  #renderError(id: RpcId, error: RpcError): string {
    this.#options.onError(error);
    return JSON.stringify(toResponse(id, { error }));
  }

  #refuse(bytes: number): RpcError | undefined {
    const { answerLimit } = this.#endpoint;
    const isFirst = this.#bytes === 0 && answerLimit.firstFits;
    if (this.#bytes + bytes > answerLimit.bytesMax && !isFirst) return answerLimit.error;
    return this.#takeMemory(this.#bytes + bytes) ? undefined : this.#endpoint.toBusyError(noMemory);
  }

  #takeMemory(bytes: number): boolean {
    const { findHolding } = this.#options;
    if (bytes <= smallBytesMax || findHolding === undefined) return true;
    if (!findHolding().tryTake(bytes - this.#counted)) return false;
    this.#counted = bytes;
    return true;
  }

  /** Whether a result or an error is always part of the answer. An error with the data of a revert is not. */
  #isShort(outcome: RpcOutcome | RpcText, text: string): boolean {
    const bytesMax = "error" in outcome ? rpcShortErrorBytesMax : this.#endpoint.answerLimit.shortResultBytesMax;
    if (text.length <= bytesMax) return true;
    if (bytesMax === 0) return false;
    return toValueText(outcome).length <= bytesMax;
  }
}

function toValueText(outcome: RpcOutcome | RpcText): string {
  if ("json" in outcome) return outcome.json;
  return JSON.stringify("error" in outcome ? outcome.error : outcome.result);
}
