import type { FastifyReply } from "fastify";
import type { Logger } from "../../lib/logger.ts";
import { toFailure, withHints } from "./failure.ts";
import { leaveNode } from "./leave-node.ts";

export const jsonType = "application/json; charset=utf-8";

/**
 * Answers a BrokerException under the reply's HTTP status, which is 200 unless set. `stele-error-retry` says whether the same call can succeed later. If it is
 * known when, `Retry-After` (RFC 9110, section 10.2.3) says so.
 */
export function sendFailure(
  reply: FastifyReply,
  error: unknown,
  { logger, operation }: { readonly logger: Logger; readonly operation: string },
): FastifyReply {
  const failure = toFailure(error, logger, { operation });
  const { retryAfterMs } = failure;
  leaveNode(reply, failure.code);
  if (reply.statusCode === 401) reply.header("www-authenticate", "Bearer"); // RFC 9110, section 15.5.2
  if (retryAfterMs !== undefined) reply.header("retry-after", Math.ceil(retryAfterMs / 1000));
  return reply
    .header("content-type", jsonType)
    .header("stele-error-retry", String(failure.retry))
    .send(JSON.stringify({ code: failure.code, message: withHints(failure) }));
}
