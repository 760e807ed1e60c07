import type { FastifyReply } from "fastify";
import type { Logger } from "../../lib/logger.ts";
import { toFailure } from "./failure.ts";

export const jsonType = "application/json; charset=utf-8";

/**
 * Answers a BrokerException under the reply's HTTP status, which is 200 unless set. The header says whether the same call can succeed
 * later.
 */
export function sendFailure(
  reply: FastifyReply,
  error: unknown,
  { logger, operation }: { readonly logger: Logger; readonly operation: string },
): FastifyReply {
  const failure = toFailure(error, logger, { operation });
  return reply
    .header("content-type", jsonType)
    .header("stele-error-retry", String(failure.retry))
    .send(JSON.stringify({ code: failure.code, message: failure.message }));
}
