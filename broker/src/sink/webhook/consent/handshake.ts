import type { Answer } from "../exchange.ts";

/**
 * A receiver's answer to the request for consent. `unknown`: it does not support the handshake. `isToPing`: it answered a ping, which has the form and
 * the signature of one subscription.
 */
export type Reply =
  | { readonly kind: "agreed"; readonly requestsPerMinuteMax?: number }
  | { readonly kind: "refused"; readonly reason: string; readonly isToPing?: true }
  | { readonly kind: "unknown"; readonly reason: string }
  | { readonly kind: "unreachable"; readonly reason: string; readonly isToPing?: true };

/** Statuses of a receiver that does not support the method. */
const unsupportedStatuses: ReadonlySet<number> = new Set([404, 405, 501]);
/** Statuses of a receiver that may agree later: timeout, too early, too many requests. */
const laterStatuses: ReadonlySet<number> = new Set([408, 425, 429]);

/**
 * Reads the answer to a validation request (HTTP 1.1 Web Hooks for Event Delivery 1.0, section 4.2). Ignores a rate that is not a positive integer of
 * at most nine digits.
 */
export function judgeHandshake({ status, headers }: Answer, origin: string): Reply {
  if (status >= 200 && status < 300) return judgeConsent(headers, origin);
  const reason = `it answered OPTIONS with ${status}`;
  if (unsupportedStatuses.has(status) || (status >= 300 && status < 400)) return { kind: "unknown", reason };
  return { kind: laterStatuses.has(status) || status >= 500 ? "unreachable" : "refused", reason };
}

/** Any 2xx status agrees to a ping. A receiver that is busy or fails counts as unreachable: it may still agree later. */
export function judgePing({ status }: Answer): Reply {
  if (status >= 200 && status < 300) return { kind: "agreed" };
  const reason = `it answered the ping with ${status}`;
  return { kind: laterStatuses.has(status) || status >= 500 ? "unreachable" : "refused", reason };
}

function judgeConsent(headers: Answer["headers"], origin: string): Reply {
  const allowed = headers["webhook-allowed-origin"];
  if (allowed === undefined) return { kind: "unknown", reason: "its answer to OPTIONS has no WebHook-Allowed-Origin" };
  const origins = String(allowed)
    .split(",")
    .map((text) => text.trim().toLowerCase());
  if (!origins.some((text) => text === "*" || text === origin.toLowerCase())) {
    return { kind: "refused", reason: `its WebHook-Allowed-Origin is not ${origin}` };
  }
  const rate = String(headers["webhook-allowed-rate"] ?? "");
  return /^[1-9]\d{0,8}$/.test(rate) ? { kind: "agreed", requestsPerMinuteMax: Number(rate) } : { kind: "agreed" };
}
