import { isBrokerError } from "@stele/wire";
import { isTopicName } from "../../domain/topic-name.ts";
import { findTraceParent } from "../../domain/trace-parent.ts";
import type { Span, SpanEnd, Tracing } from "../../ports/tracing.ts";
import type { OnSettled, OnTransactionSettled, PublishCall, PublishOutcome } from "../broker.ts";
import { messageAttributes } from "../message-attributes.ts";
import { Inlet, type InletOptions, type SubmitOptions } from "./inlet.ts";

interface TracedInletOptions extends InletOptions {
  readonly tracing?: Tracing | undefined;
}

/** An inlet that records a span for each publish with a trace, if tracing is on. */
export function createInlet(options: TracedInletOptions): Inlet {
  const { tracing } = options;
  return tracing === undefined ? new Inlet(options) : new TracedInlet({ ...options, tracing });
}

class TracedInlet extends Inlet {
  readonly #options: InletOptions & { readonly tracing: Tracing };

  constructor(options: InletOptions & { readonly tracing: Tracing }) {
    super(options);
    this.#options = options;
  }

  override submit(call: PublishCall, onSettled: OnSettled, options?: SubmitOptions): void {
    const span = this.#start(call);
    if (span === undefined) {
      super.submit(call, onSettled, options);
      return;
    }
    const settle = (outcome: PublishOutcome): void => {
      span.end(toEnd(outcome));
      onSettled(outcome);
    };
    endingOnError([span], () => super.submit(call, settle, options));
  }

  override submitAll(calls: readonly PublishCall[], onSettled: OnTransactionSettled): void {
    const spans = calls.map((call) => this.#start(call));
    const settle: OnTransactionSettled = (outcome) => {
      for (const [index, span] of spans.entries()) {
        const own = outcome.status === "SUCCESS" ? outcome.results[index] : outcome;
        span?.end(own === undefined ? {} : toEnd(own));
      }
      onSettled(outcome);
    };
    endingOnError(spans, () => super.submitAll(calls, settle));
  }

  /** Undefined for a publish without a trace, or with an invalid topic name. */
  #start({ topic, content, extensions }: PublishCall): Span | undefined {
    const { tracing, extensionPrefix } = this.#options;
    const traceParent = findTraceParent(extensions, extensionPrefix);
    // The inlet refuses an invalid name, which may be too long for a span.
    if (traceParent === undefined || !isTopicName(topic)) return undefined;
    const attributes = {
      ...messageAttributes("publish", { topic }),
      "messaging.operation.type": "send",
      "messaging.message.body.size": content.byteLength,
    };
    return tracing.start({ name: `publish ${topic}`, kind: "server", traceParents: [traceParent], attributes });
  }
}

function endingOnError(spans: readonly (Span | undefined)[], submit: () => void): void {
  try {
    submit();
  } catch (error) {
    for (const span of spans) span?.end(toEnd({ status: "REFUSED", error }));
    throw error;
  }
}

function toEnd(outcome: PublishOutcome | { readonly status: "TIMEOUT" }): SpanEnd {
  if (outcome.status === "REFUSED") return { error: { type: toErrorType(outcome.error) } };
  if (!("eventId" in outcome)) return { error: { type: outcome.status } };
  const { status, eventId } = outcome;
  return status === "SUCCESS" ? { attributes: { "messaging.message.id": eventId } } : { error: { type: status } };
}

/** Only the code of an error: its text may quote what the client wrote. */
function toErrorType(error: unknown): string {
  return isBrokerError(error) ? String(error.code) : "internal";
}
