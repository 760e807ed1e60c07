import type * as OpenTelemetryApi from "@opentelemetry/api";
import type { Context, Link, Span as OtelSpan, SpanContext, Tracer } from "@opentelemetry/api";
import type { Logger } from "../lib/logger.ts";
import type { Span, SpanAttributes, SpanEnd, SpanOrder, Tracing } from "../ports/tracing.ts";

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
  return new OpenTelemetry(api, api.trace.getTracer("stele", version));
}

function hasTracerProvider(): boolean {
  const found: unknown = Reflect.get(globalThis, registered);
  return typeof found === "object" && found !== null && "trace" in found;
}

class OpenTelemetry implements Tracing {
  readonly #api: Api;
  readonly #tracer: Tracer;

  constructor(api: Api, tracer: Tracer) {
    this.#api = api;
    this.#tracer = tracer;
  }

  start({ name, kind, traceParents, attributes, startedAt }: SpanOrder): Span {
    const { SpanKind } = this.#api;
    const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL };
    const contexts = traceParents.map(toSpanContext);
    const span = this.#tracer.startSpan(
      name,
      {
        kind: kinds[kind],
        attributes: present(attributes),
        links: contexts.length === 1 ? [] : contexts.map((context): Link => ({ context })),
        ...(startedAt !== undefined && { startTime: startedAt }),
      },
      this.#parentOf(contexts),
    );
    return new TraceSpan(this.#api, span);
  }

  #parentOf(contexts: readonly SpanContext[]): Context {
    const { ROOT_CONTEXT, trace } = this.#api;
    const [only] = contexts;
    return only === undefined || contexts.length > 1 ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, only);
  }
}

class TraceSpan implements Span {
  readonly #api: Api;
  readonly #span: OtelSpan;

  constructor(api: Api, span: OtelSpan) {
    this.#api = api;
    this.#span = span;
  }

  get traceParent(): string | undefined {
    if (!this.#span.isRecording()) return undefined;
    const { traceId, spanId, traceFlags } = this.#span.spanContext();
    return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
  }

  end({ attributes = {}, error }: SpanEnd): void {
    this.#span.setAttributes(present(attributes));
    if (error !== undefined) {
      this.#span.setAttribute("error.type", error.type);
      const { SpanStatusCode } = this.#api;
      this.#span.setStatus({
        code: SpanStatusCode.ERROR,
        ...(error.reason !== undefined && { message: error.reason }),
      });
    }
    this.#span.end();
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
