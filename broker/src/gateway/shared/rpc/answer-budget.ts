import type { RpcEndpoint } from "./endpoint.ts";
import { renderResponse, type RpcId, type RpcOutcome, type RpcText, toResponse } from "./message.ts";

type AnswerLimit = NonNullable<RpcEndpoint["answerLimit"]>;

/** What the responses of one answer may still hold. */
export class AnswerBudget {
  readonly #limit: AnswerLimit | undefined;
  #bytes = 0;
  #isExceeded = false;

  constructor(limit: AnswerLimit | undefined) {
    this.#limit = limit;
  }

  /** The limit's error once a result was too long: what is not run yet need not be. */
  findRefusal(): RpcOutcome | undefined {
    return this.#limit !== undefined && this.#isExceeded ? { error: this.#limit.error } : undefined;
  }

  /** The response as JSON, with the limit's error in place of a result that is too long. */
  render(id: RpcId, outcome: RpcOutcome | RpcText): string {
    const text = renderResponse(id, outcome);
    if (this.#limit === undefined || this.#take(text, this.#limit)) return text;
    return JSON.stringify(toResponse(id, { error: this.#limit.error }));
  }

  #take(text: string, { bytesMax }: AnswerLimit): boolean {
    const bytes = this.#bytes + Buffer.byteLength(text);
    this.#isExceeded ||= bytes > bytesMax;
    if (bytes <= bytesMax) this.#bytes = bytes;
    return bytes <= bytesMax;
  }
}
