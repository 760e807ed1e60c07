import type { IncomingHttpHeaders } from "node:http";
import { traceParentKey } from "../../domain/trace-parent.ts";

/** The header `traceparent`; given more than once, Node.js joins the values, and they are none. */
export function findTraceParentHeader(headers: IncomingHttpHeaders): string | undefined {
  const value = headers[traceParentKey];
  return typeof value === "string" ? value : undefined;
}
