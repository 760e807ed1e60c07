import { adminPath, operationNames, quote, restPathOf } from "@stele/wire";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Logger } from "../lib/logger.ts";
import type { AdminOptions, Audience } from "./admin/admin-plugin.ts";
import { isOperatorsPath, operatorsListener } from "./admin/operators-path.ts";
import { sendProblem } from "./admin/v1/problem.ts";
import { headersMax } from "./limits.ts";
import { isCloudEventRequest } from "./rest/cloud-events.ts";
import { isRestTarget, toPath } from "./shared/base-path.ts";
import { parameterError } from "./shared/failure.ts";
import { fromFramework } from "./shared/from-framework.ts";
import { sendFailure } from "./shared/send-failure.ts";
import { statusOf } from "./shared/status-of.ts";

const adviceOnOperators = "operators have a port of their own, adminPort; stele takes its address as --admin-url";

export interface FallbackOptions {
  readonly basePath: string;
  /** Whom the listener serves; everybody if left out. */
  readonly audience?: Audience | undefined;
  /** The started listeners. */
  readonly listeners?: AdminOptions["listeners"];
  /** The chain that one of them offers. */
  readonly chain?: object | undefined;
  readonly logger: Logger;
}

/**
 * Answers requests that have no route, and errors that no route answers. Under `/rest` a failure has HTTP status 200 (docs/errors.md); elsewhere, and for
 * CloudEvents, the status gives the kind of failure. The admin API answers problems.
 */
export function createFallbacks({ basePath, audience, listeners, chain, logger }: FallbackOptions) {
  const adminApiPath = `${basePath}${adminPath}/`;
  const isRest = ({ raw }: FastifyRequest) => isRestTarget(raw.url ?? "", basePath);
  // Senders of CloudEvents read only the status: 200 would make them drop the event.
  const hasStatus = (request: FastifyRequest): boolean => !isRest(request) || isCloudEventRequest(request);
  const hasOperators = (): boolean => listeners?.().some(({ name }) => name === operatorsListener) === true;
  const advise = (request: FastifyRequest): string => {
    if (isRest(request) && audience !== "operators") return adviseRest(request.method, basePath);
    const isChain = chain !== undefined && toPath(request.raw.url ?? "") === `${basePath}/chain`;
    const isForOperators = isChain || isOperatorsPath(request, basePath);
    if (isForOperators && audience === "clients" && hasOperators()) return adviceOnOperators;
    return `GET ${basePath}/ lists what there is`;
  };
  const context = { logger, operation: "none" };
  return {
    /** Node drops the headers past the limit, so the request may lack its credential. Its body is not read. */
    answerTooManyHeaders: (request: FastifyRequest, reply: FastifyReply): void => {
      const failure = parameterError(`the request has more than ${headersMax} headers`);
      sendFailure(reply.status(hasStatus(request) ? 431 : 200).header("connection", "close"), failure, context);
    },
    answerNotFound: (request: FastifyRequest, reply: FastifyReply): void => {
      const place = `${request.method} ${quote(toPath(request.raw.url ?? ""))}`;
      const failure = parameterError(`there is nothing at ${place}; ${advise(request)}`);
      sendFailure(reply.status(hasStatus(request) ? 404 : 200), failure, context);
    },
    answerError: (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
      const failure = fromFramework(error);
      if (toPath(request.raw.url ?? "").startsWith(adminApiPath)) {
        sendProblem(reply, failure, context);
        return;
      }
      const status = hasStatus(request) ? statusOf(failure) : 200;
      sendFailure(reply.status(status), failure, context);
    },
  };
}

function adviseRest(method: string, basePath: string): string {
  if (method !== "GET" && method !== "POST") return "use GET or POST";
  return `the operations are ${operationNames.map((name) => basePath + restPathOf(name)).join(", ")}`;
}
