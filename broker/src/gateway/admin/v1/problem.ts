import { errorCatalogue, type Problem } from "@stele/wire";
import type { FastifyReply } from "fastify";
import type { Logger } from "../../../lib/logger.ts";
import { toFailure } from "../../shared/failure.ts";
import { leaveNode } from "../../shared/leave-node.ts";
import { statusOf } from "../../shared/status-of.ts";

const problemType = "application/problem+json; charset=utf-8";

const titles = new Map(Object.values(errorCatalogue).map(({ code, message }) => [code, message]));

export interface ProblemContext {
  readonly logger: Logger;
  readonly operation: string;
  /** Replaces the status of the failure. */
  readonly status?: number;
}

/** Answers a failure as a problem (RFC 9457), with the headers that go with its status (RFC 9110). */
export function sendProblem(reply: FastifyReply, error: unknown, { logger, ...rest }: ProblemContext): FastifyReply {
  const { code, message: detail, retry, hints, retryAfterMs } = toFailure(error, logger, rest);
  const status = rest.status ?? statusOf(error);
  leaveNode(reply, code);
  if (status === 401) reply.header("www-authenticate", "Bearer");
  if (retryAfterMs !== undefined) reply.header("retry-after", Math.ceil(retryAfterMs / 1000));
  const all = hints.length === 0 ? {} : { hints: [...hints] };
  const problem: Problem = { type: "about:blank", title: titles.get(code) ?? "", status, detail, code, retry, ...all };
  return reply.status(status).header("content-type", problemType).send(JSON.stringify(problem));
}
