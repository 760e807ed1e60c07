import type { CallbackTarget } from "../../../ports/sink.ts";
import { describeFailure } from "../describe-failure.ts";
import { placeOf } from "../callback-url.ts";
import type { Answer } from "../exchange.ts";
import type { MessageHeaders } from "../message-headers.ts";
import type { Call, ReceiverCaller } from "../receiver-caller.ts";
import type { ConsentMode } from "./consents.ts";
import { judgeHandshake, judgePing, type Reply } from "./handshake.ts";
import { createPing } from "./ping.ts";

export interface QuestionsOptions {
  readonly mode: ConsentMode;
  readonly caller: ReceiverCaller;
  readonly headers: MessageHeaders;
  /** The broker's name in requests for consent. */
  readonly origin: string;
  /** Cancels every request. */
  readonly signal: AbortSignal;
}

/** Timeout of one request for consent, in milliseconds. */
const questionTimeoutMs = 5000;
/** Approximate size of a request. */
const questionBytes = 512;

/** Asks receivers for consent: by the CloudEvents handshake and, if consent is required, by a ping. */
export class Questions {
  readonly #options: QuestionsOptions;

  constructor(options: QuestionsOptions) {
    this.#options = options;
  }

  /** In `try`, a receiver that does not support the handshake gets no ping: it may be called anyway. */
  async ask(target: CallbackTarget, url: URL): Promise<Reply> {
    const reply = await this.#shakeHands(url);
    if (reply.kind !== "unknown" || this.#options.mode !== "require") return reply;
    const pinged = await this.#ping(target, url);
    return pinged.kind === "refused" || pinged.kind === "unreachable" ? { ...pinged, isToPing: true } : pinged;
  }

  #shakeHands(url: URL): Promise<Reply> {
    const { origin, headers } = this.#options;
    const message = () => ({ headers: { ...headers.common, "webhook-request-origin": origin }, body: null });
    return this.#call(url, { method: "OPTIONS", message }, (answer) => judgeHandshake(answer, origin));
  }

  #ping(target: CallbackTarget, url: URL): Promise<Reply> {
    const message = createPing(target, this.#options.headers);
    return this.#call(url, { method: "POST", message }, judgePing);
  }

  async #call(url: URL, call: Pick<Call, "method" | "message">, judge: (answer: Answer) => Reply): Promise<Reply> {
    const { caller, signal } = this.#options;
    const { origin, path } = placeOf(url);
    const request = { ...call, origin, path, bytes: questionBytes, timeoutMs: questionTimeoutMs };
    const end = await caller.call(request, { signal });
    if (end.kind === "answered") return judge(end.answer);
    const reason = end.kind === "broken" ? describeFailure(end.error) : "the broker is stopping";
    return { kind: "unreachable", reason };
  }
}
