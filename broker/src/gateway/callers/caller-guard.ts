import { BrokerError } from "@stele/wire";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Logger } from "../../lib/logger.ts";
import { parameterError } from "../shared/failure.ts";
import { sendFailure } from "../shared/send-failure.ts";
import { CallerRule, findHostCountFault, isOfPage } from "./caller-rule.ts";
import { answerCors } from "./cors.ts";
import { OriginRule } from "./origin-rule.ts";

export interface CallerGuardOptions {
  readonly allowedHosts: readonly string[];
  readonly allowedOrigins: readonly string[];
  /** Whether a request is for operators alone. No page of another origin may send such a request, whatever `allowedOrigins` says. */
  readonly isForOperators: (request: FastifyRequest) => boolean;
  /** Whether a request only opens a page to which any site may link. */
  readonly isOpenLink: (request: FastifyRequest) => boolean;
  readonly logger: Logger;
}

/**
 * Builds the check that runs before every route, even for unknown paths, and before any byte of a body is read. It answers 400 to a wrong number of Host
 * headers, 403 to pages, hosts and callbacks that may not call, and answers CORS preflights of allowed origins. It returns true if it has answered.
 */
export function createCallerGuard({ allowedHosts, allowedOrigins, logger, ...options }: CallerGuardOptions) {
  const origins = new OriginRule(allowedOrigins);
  const rule = new CallerRule({ allowedHosts, origins });
  const operatorsRule = new CallerRule({ allowedHosts, origins: undefined });
  return (request: FastifyRequest, reply: FastifyReply): boolean => {
    const hostFault = findHostCountFault(request.raw);
    if (hostFault !== undefined) return refuse(reply.status(400), parameterError(hostFault));
    const isPage = isOfPage(request.raw);
    const applied = isPage && options.isForOperators(request) ? operatorsRule : rule;
    const isOpen = isPage && options.isOpenLink(request);
    const details = isOpen ? applied.findHostFault(request.raw) : applied.findRefusal(request.raw);
    if (details === undefined) return answerCors(request, reply, origins);
    return refuse(reply.status(403), new BrokerError("callerRefused", { details }));
  };

  /** The body is not read, so the connection cannot carry another request. */
  function refuse(reply: FastifyReply, error: BrokerError): true {
    sendFailure(reply.header("connection", "close"), error, { logger, operation: "none" });
    return true;
  }
}
