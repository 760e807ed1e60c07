import type { IncomingHttpHeaders } from "node:http";
import { traceParentKey } from "../../domain/trace-parent.ts";

/** The header `traceparent`. Node.js joins the values of a repeated header, which makes it invalid. */
export function findTraceParentHeader(headers: IncomingHttpHeaders): string | undefined {
  const value = headers[traceParentKey];
  return typeof value === "string" ? value : undefined;
}
