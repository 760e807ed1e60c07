/**
 * Attributes by the names of OpenTelemetry conventions; undefined ones are left out. They contain no content, extension key or secret, and only the host
 * of a url.
 */
export type SpanAttributes = Readonly<Record<string, string | number | undefined>>;

export interface SpanStart {
  readonly name: string;
  /** `server`: the broker answers a caller. `client`: the broker calls a receiver. `internal`: neither. */
  readonly kind: "server" | "client" | "internal";
  /** Valid W3C traceparents. If there is exactly one, the span is part of its trace. Otherwise the span begins a new trace, with links to all of them. */
  readonly traceParents: readonly string[];
  readonly attributes: SpanAttributes;
  /** Milliseconds since the epoch; now if left out. */
  readonly startedAt?: number | undefined;
}

export interface SpanEnd {
  readonly attributes?: SpanAttributes | undefined;
  /** `type`: a short name from a known set, or a number. `reason`: what happened, in words. */
  readonly error?: { readonly type: string; readonly reason?: string | undefined } | undefined;
}

export interface Span {
  /** W3C traceparent for calls that the broker makes during the span; undefined if nobody records the span. */
  readonly traceParent: string | undefined;
  /** Ends the span; a span that is never ended is never shown. Never throws. */
  end(end: SpanEnd): void;
}

/** Records the broker's work as spans in the traces of publishers. Present only if somebody records spans. */
export interface Tracing {
  /** Never throws. */
  start(start: SpanStart): Span;
}
