/** By the names of OpenTelemetry's semantic conventions. What is undefined is left out. They contain no content, no key of an extension, no secret, and of a url the host alone. */
export type SpanAttributes = Readonly<Record<string, string | number | undefined>>;

export interface SpanOrder {
  readonly name: string;
  /** `server`: the broker answers a caller. `client`: it calls a receiver. `internal`: neither. */
  readonly kind: "server" | "client" | "internal";
  /** W3C traceparents, checked. The span is a part of the one trace; several are linked to a span of a trace of its own. */
  readonly traceParents: readonly string[];
  readonly attributes: SpanAttributes;
  /** In milliseconds since the epoch; now if left out. */
  readonly startedAt?: number | undefined;
}

export interface SpanEnd {
  readonly attributes?: SpanAttributes | undefined;
  /** A short name from a known set, or a number, and what happened in words. */
  readonly error?: { readonly type: string; readonly reason?: string | undefined } | undefined;
}

export interface Span {
  /** As the W3C traceparent for whoever is called meanwhile; undefined where nobody records the span. */
  readonly traceParent: string | undefined;
  /** Ends the span; a span that is never ended is never shown. Never throws. */
  end(end: SpanEnd): void;
}

/** Shows what the broker does as parts of the traces of publishers. Present only where somebody records spans. */
export interface Tracing {
  /** Never throws. */
  start(order: SpanOrder): Span;
}
