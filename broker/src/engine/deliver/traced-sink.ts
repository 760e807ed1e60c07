import { findTraceParent } from "../../domain/trace-parent.ts";
import type {
  AttemptAnswer,
  AttemptOptions,
  AttemptOutcome,
  AttemptSignal,
  CallbackTarget,
  Notification,
  Sink,
  TestOutcome,
} from "../../ports/sink.ts";
import type { Span, SpanAttributes, SpanEnd, Tracing } from "../../ports/tracing.ts";
import { realOf } from "../event-view.ts";
import { messageAttributes } from "../message-attributes.ts";

export interface TracedSinkOptions {
  readonly sink: Sink;
  readonly tracing: Tracing;
  readonly extensionPrefix: string;
}

/** Records a span for each attempt to deliver an event that has a trace, and sends the span's traceparent to the receiver. */
export class TracedSink implements Sink {
  readonly #options: TracedSinkOptions;

  constructor(options: TracedSinkOptions) {
    this.#options = options;
  }

  checkTarget(target: CallbackTarget): Promise<void> {
    return this.#options.sink.checkTarget(target);
  }

  enter(target: CallbackTarget, signal: AttemptSignal): ReturnType<Sink["enter"]> {
    return this.#options.sink.enter(target, signal);
  }

  test(target: CallbackTarget, signal: AttemptSignal, mayStart?: () => boolean): Promise<TestOutcome> {
    return this.#options.sink.test(target, signal, mayStart);
  }

  stop(graceMs: number): Promise<void> {
    return this.#options.sink.stop(graceMs);
  }

  attempt(notification: Notification, signal: AttemptSignal, options: AttemptOptions = {}): Promise<AttemptOutcome> {
    const { sink } = this.#options;
    const span = this.#start(notification);
    if (span === undefined) return sink.attempt(notification, signal, options);
    let answer: AttemptAnswer | undefined;
    const onAnswer = (given: AttemptAnswer): void => {
      answer = given;
      options.onAnswer?.(given);
    };
    const { traceParent } = span;
    const traced = traceParent === undefined ? notification : { ...notification, traceParent };
    return sink.attempt(traced, signal, { ...options, onAnswer }).then((outcome) => {
      // A withheld notification was not sent, so it gets no span.
      if (outcome.status !== "withheld") span.end(toEnd(outcome, answer));
      return outcome;
    });
  }

  #start(notification: Notification): Span | undefined {
    const { tracing, extensionPrefix } = this.#options;
    const { subscription, event, batch, eventId } = notification;
    const events = batch?.map((one) => one.event) ?? [event];
    const traceParents = events.flatMap(({ extensions }) => findTraceParent(extensions, extensionPrefix) ?? []);
    if (traceParents.length === 0) return undefined;
    const { topic } = realOf(event);
    const attributes = {
      ...messageAttributes("deliver", { topic, ...(batch === undefined && { eventId }) }),
      "messaging.destination.subscription.name": subscription.id,
      "messaging.batch.message_count": batch?.length,
      "http.request.method": "POST",
      ...toHost(subscription.url),
    };
    return tracing.start({ name: `deliver ${topic}`, kind: "client", traceParents, attributes });
  }
}

/** Attributes of the receiver's scheme, host and port; the path and the query may contain a secret. */
function toHost(url: string): SpanAttributes {
  if (!URL.canParse(url)) return {};
  const { protocol, hostname, port } = new URL(url);
  const usual = protocol === "https:" ? 443 : 80;
  return { "url.scheme": protocol.slice(0, -1), "server.address": hostname, "server.port": Number(port) || usual };
}

function toEnd(outcome: Exclude<AttemptOutcome, { status: "withheld" }>, answer: AttemptAnswer | undefined): SpanEnd {
  const attributes = { "http.response.status_code": answer?.status };
  if (outcome.status === "accepted") return { attributes };
  const type = answer === undefined || answer.status < 300 ? outcome.status : String(answer.status);
  return { attributes, error: { type, reason: outcome.reason } };
}
