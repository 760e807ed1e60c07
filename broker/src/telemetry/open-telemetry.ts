import type * as OpenTelemetryApi from "@opentelemetry/api";
import type { Context, Link, Span as OtelSpan, SpanContext, Tracer } from "@opentelemetry/api";
import type { Logger } from "../lib/logger.ts";
import type { Span, SpanAttributes, SpanEnd, SpanStart, Tracing } from "../ports/tracing.ts";

type Api = typeof OpenTelemetryApi;

/** Name of the global where every version 1.x of the API stores what an SDK registers. */
const registered = Symbol.for("opentelemetry.js.api.1");

export interface TracingOptions {
  readonly version: string;
  readonly logger: Logger;
}

/**
 * Makes spans with the OpenTelemetry SDK that the host has registered (`node --import` or `--require`). Without an SDK, returns undefined and loads
 * nothing. If the SDK's API is too old, logs a warning and returns undefined. The broker uses an old minor version of the API on purpose: an API finds
 * only SDKs that registered with the same or a later minor version.
 */
export async function findTracing({ version, logger }: TracingOptions): Promise<Tracing | undefined> {
  if (!hasTracerProvider()) return undefined;
  const api = await import("@opentelemetry/api");
  const probe = api.trace.getTracerProvider();
  const isFound = !(probe instanceof api.ProxyTracerProvider) || probe.getDelegateTracer("stele") !== undefined;
  if (!isFound) {
    const remedy = "update @opentelemetry/api in the SDK's folder to 1.4 or later";
    logger.warn("no spans: the OpenTelemetry SDK uses an API that is too old", { remedy });
    return undefined;
  }
  logger.info("spans go to the OpenTelemetry SDK of this process");
  return new OpenTelemetry(api, api.trace.getTracer("stele", version), new Sdk(logger));
}

/** Calls the SDK, which runs samplers and processors of the host. What they throw must not stop the broker's work; the first error is logged. */
class Sdk {
  readonly #logger: Logger;
  #hasFailed = false;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  call<Result>(work: () => Result): Result | undefined {
    try {
      return work();
    } catch (error) {
      if (!this.#hasFailed) this.#logger.warn("the OpenTelemetry SDK threw an error, spans may be missing", { error });
      this.#hasFailed = true;
      return undefined;
    }
  }
}

function hasTracerProvider(): boolean {
  const found: unknown = Reflect.get(globalThis, registered);
  return typeof found === "object" && found !== null && "trace" in found;
}

class OpenTelemetry implements Tracing {
  readonly #api: Api;
  readonly #tracer: Tracer;
  readonly #sdk: Sdk;

  constructor(api: Api, tracer: Tracer, sdk: Sdk) {
    this.#api = api;
    this.#tracer = tracer;
    this.#sdk = sdk;
  }

  start({ name, kind, traceParents, attributes, startedAt }: SpanStart): Span {
    const { SpanKind } = this.#api;
    const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL };
    const contexts = traceParents.map(toSpanContext);
    const options = {
      kind: kinds[kind],
      attributes: present(attributes),
      links: contexts.length === 1 ? [] : contexts.map((context): Link => ({ context })),
      ...(startedAt !== undefined && { startTime: startedAt }),
    };
    const span = this.#sdk.call(() => this.#tracer.startSpan(name, options, this.#parentOf(contexts)));
    return new TraceSpan(this.#api, this.#sdk, span);
  }

  #parentOf(contexts: readonly SpanContext[]): Context {
    const { ROOT_CONTEXT, trace } = this.#api;
    const [only] = contexts;
    return only === undefined || contexts.length > 1 ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, only);
  }
}

class TraceSpan implements Span {
  readonly #api: Api;
  readonly #sdk: Sdk;
  /** Undefined if the SDK could not make it. */
  readonly #span: OtelSpan | undefined;

  constructor(api: Api, sdk: Sdk, span: OtelSpan | undefined) {
    this.#api = api;
    this.#sdk = sdk;
    this.#span = span;
  }

  get traceParent(): string | undefined {
    const context = this.#sdk.call(() => (this.#span?.isRecording() === true ? this.#span.spanContext() : undefined));
    if (context === undefined) return undefined;
    return `00-${context.traceId}-${context.spanId}-${context.traceFlags.toString(16).padStart(2, "0")}`;
  }

  end({ attributes = {}, error }: SpanEnd): void {
    const span = this.#span;
    if (span === undefined) return;
    this.#sdk.call(() => span.setAttributes(present(attributes)));
    if (error !== undefined) this.#sdk.call(() => this.#setError(span, error));
    this.#sdk.call(() => span.end());
  }

  #setError(span: OtelSpan, { type, reason }: NonNullable<SpanEnd["error"]>): void {
    span.setAttribute("error.type", type);
    const { SpanStatusCode } = this.#api;
    span.setStatus({ code: SpanStatusCode.ERROR, ...(reason !== undefined && { message: reason }) });
  }
}

function present(attributes: SpanAttributes): Record<string, string | number> {
  return Object.fromEntries(Object.entries(attributes).filter(isPresent));
}

function isPresent(entry: [string, string | number | undefined]): entry is [string, string | number] {
  return entry[1] !== undefined;
}

/** Expects a valid traceparent. */
function toSpanContext(traceParent: string): SpanContext {
  const [, traceId = "", spanId = "", flags = "0"] = traceParent.split("-");
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}
