import type { AttemptOutcome, CallbackTarget, Notification, TestOutcome } from "../../ports/sink.ts";
import { isRpc, webhookIdOf } from "./callback-body.ts";
import { describeFailure } from "./describe-failure.ts";
import type { Answer } from "./exchange.ts";
import { findJson } from "../../lib/find-json.ts";
import { parseRetryAfter } from "../../lib/retry-after.ts";

export interface JudgeContext {
  readonly notification: Notification;
  /** Milliseconds since the epoch, to which a date in `Retry-After` is compared. */
  readonly now: number;
}

/**
 * Interprets an answer. For 204, and for a status other than 2xx, the status alone decides. Any other 2xx answer must also be complete, or at least as long as
 * the read limit: a receiver that dies while it answers may not have stored the event. RESTful needs nothing else. JsonRPC needs 204, or a complete response
 * that is not an error and not the answer to another request.
 */
export function judgeAnswer(answer: Answer, { notification, now }: JudgeContext): AttemptOutcome {
  const outcome = judgeStatus(answer, now);
  const isEnough = answer.status === 204 || !isRpc(notification.subscription);
  if (outcome.status !== "accepted" || isEnough) return outcome;
  const fault = findResponseFault(answer, webhookIdOf(notification));
  return fault === undefined ? { status: "accepted" } : fail(`answered ${answer.status}, but ${fault}`);
}

/** Interprets the answer to a test. A JsonRPC receiver need not know pings, so any JSON-RPC response counts, even an error. */
export function judgeTest(
  answer: Answer,
  { target, now }: { readonly target: CallbackTarget; readonly now: number },
): TestOutcome["outcome"] {
  const outcome = judgeStatus(answer, now);
  if (outcome.status !== "accepted" || answer.status === 204 || !isRpc(target)) return outcome;
  const response = readResponse(answer);
  return typeof response === "string" ? fail(`answered ${answer.status}, but ${response}`) : outcome;
}

/** Interprets an answer without looking at its body. */
function judgeStatus(answer: Answer, now: number): TestOutcome["outcome"] {
  if (answer.status === 410) return { status: "gone", reason: "answered 410" };
  if (answer.status < 200 || answer.status > 299) return judgeRefusal(answer, now);
  // A 204 ends with its head, whatever length its head names (RFC 9112, section 6.3).
  if (answer.brokenBy !== undefined && answer.status !== 204)
    return fail(`answered ${answer.status}, but ${describeFailure(answer.brokenBy)}`);
  return { status: "accepted" };
}

function judgeRefusal(answer: Answer, now: number): TestOutcome["outcome"] {
  const isRedirect = answer.status >= 300 && answer.status < 400;
  const reason = `answered ${answer.status}${isRedirect ? ": redirects are not followed" : ""}`;
  const header = answer.headers["retry-after"];
  const retryAfterMs = parseRetryAfter(typeof header === "string" ? header : header?.[0], now);
  return { status: "failed", reason, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
}

/**
 * Why a JSON-RPC response does not count; undefined if it does. A response may omit its id or have null, as many servers answer; any other id must be the
 * request's (JSON-RPC 2.0, section 5). `error: null` is not an error.
 */
function findResponseFault(answer: Answer, requestId: string): string | undefined {
  const response = readResponse(answer);
  if (typeof response === "string") return response;
  if ("error" in response && response.error !== null) return `with a JSON-RPC error${codeOf(response.error)}`;
  if ("id" in response && response.id !== null && response.id !== requestId)
    return "the JSON-RPC response is to another request";
  return undefined;
}

/** The JSON-RPC response, or why it is none. */
function readResponse({ isCut, body }: Answer): object | string {
  if (isCut) return "the JSON-RPC response is too long";
  const response = findJson(utf8.decode(body));
  const isResponse = typeof response === "object" && response !== null && !Array.isArray(response);
  return isResponse ? response : "the body is not a JSON-RPC response";
}

/** Without a byte order mark, which some servers put before their JSON and a reader may ignore (RFC 8259, section 8.1). */
const utf8 = new TextDecoder();

function codeOf(error: unknown): string {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  return typeof code === "number" ? ` ${code}` : "";
}

function fail(reason: string): TestOutcome["outcome"] {
  return { status: "failed", reason };
}
