import type { Extensions } from "./event.ts";

/** Name of the W3C Trace Context header, and, after the extension prefix, of the extension that carries it. */
export const traceParentKey = "traceparent";

/** W3C Trace Context level 1, section 3.2.2: version 00 to fe, a trace and a parent that are not all zeros, flags. A later version may append more. */
const pattern = /^(?!ff)([0-9a-f]{2})-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[\x21-\x7e]{1,200})?$/;

function isTraceParent(text: string): boolean {
  const match = pattern.exec(text);
  return match !== null && (match[1] !== "00" || match[2] === undefined);
}

/** Adds the trace of a request to the extensions of its publish, unless they have one. Ignores an invalid trace (section 4.3). */
export function withTraceParent(extensions: Extensions, text: string | undefined, prefix: string): Extensions {
  const key = prefix + traceParentKey;
  if (text === undefined || !isTraceParent(text) || extensions.some(([name]) => name === key)) return extensions;
  return [...extensions, [key, text]];
}

/** The trace that an event is part of. Undefined if it has no trace, or an invalid one: a publisher may write anything. */
export function findTraceParent(extensions: Extensions, prefix: string): string | undefined {
  const value = extensions.find(([name]) => name === prefix + traceParentKey)?.[1];
  return value !== undefined && isTraceParent(value) ? value : undefined;
}

/** Removes the trace, in order to compare a publish with its repeat, which is part of another span. */
export function withoutTraceParent(extensions: Extensions, prefix: string): Extensions {
  return extensions.filter(([name]) => name !== prefix + traceParentKey);
}
