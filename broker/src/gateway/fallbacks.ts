import { quote } from "@stele/wire";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Logger } from "../lib/logger.ts";
import { headersMax } from "./limits.ts";
import { toPath } from "./shared/base-path.ts";
import { parameterError } from "./shared/failure.ts";
import { fromFramework } from "./shared/from-framework.ts";
import { sendFailure } from "./shared/send-failure.ts";
import { statusOf } from "./shared/status-of.ts";

/**
 * Answers requests that have no route, and errors that no route answers. Under `/rest` a failure has HTTP status 200 (docs/errors.md); elsewhere the
 * status gives the kind of failure.
 */
export function createFallbacks({ basePath, logger }: { readonly basePath: string; readonly logger: Logger }) {
  const restPath = `${basePath}/rest`;
  const isRest = ({ raw }: FastifyRequest) => {
    const path = toPath(raw.url ?? "");
    return path === restPath || path.startsWith(`${restPath}/`);
  };
  const context = { logger, operation: "none" };
  return {
    /** Node drops the headers past the limit, so the request may lack its credential. Its body is not read. */
    answerTooManyHeaders: (request: FastifyRequest, reply: FastifyReply): void => {
      const failure = parameterError(`the request has more than ${headersMax} headers`);
      sendFailure(reply.status(isRest(request) ? 200 : 431).header("connection", "close"), failure, context);
    },
    answerNotFound: (request: FastifyRequest, reply: FastifyReply): void => {
      const failure = parameterError(`there is nothing at ${request.method} ${quote(toPath(request.raw.url ?? ""))}`);
      sendFailure(reply.status(isRest(request) ? 200 : 404), failure, context);
    },
    answerError: (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
      const failure = fromFramework(error);
      const status = isRest(request) ? 200 : statusOf(failure);
      sendFailure(reply.status(status), failure, context);
    },
  };
}
