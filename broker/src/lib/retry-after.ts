/** Longest wait that a receiver can request, in milliseconds. */
export const retryAfterMsMax = 3_600_000;

/** The wait in milliseconds that a `Retry-After` header requests by seconds or an HTTP date (RFC 9110, section 10.2.3); undefined if it requests none. */
export function parseRetryAfter(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  const waitMs = /^\d+$/.test(text) ? Number(text) * 1000 : parseHttpDate(text) - now;
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(waitMs, 0), retryAfterMsMax);
}

/**
 * Every form of an HTTP date begins with a weekday and has a time with seconds. Date.parse accepts far more, so check the form first. The oldest form, which
 * ends with the year, has no zone and means GMT.
 */
function parseHttpDate(text: string): number {
  if (!/^[A-Z][a-z]{2,8},? .*\d{2}:\d{2}:\d{2}/.test(text)) return Number.NaN;
  return Date.parse(/:\d{2} \d{4}$/.test(text) ? `${text} GMT` : text);
}
