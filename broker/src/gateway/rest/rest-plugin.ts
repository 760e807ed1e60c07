import { type OperationName, operationNames, operations, restPathOf } from "@stele/wire";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Broker, PublishOutcome } from "../../engine/broker.ts";
import type { Logger } from "../../lib/logger.ts";
import { ConnectionCallers } from "../callers/connection-callers.ts";
import { fromFramework } from "../shared/from-framework.ts";
import { type AskedOperation, readPublishCall } from "../shared/operation-handlers.ts";
import { renderSendResult } from "../shared/results.ts";
import type { OperationRunner } from "../shared/run-operation.ts";
import { jsonType, sendFailure } from "../shared/send-failure.ts";
import { addVary } from "../shared/vary.ts";
import { prefersText } from "./accept.ts";
import { readParameters, toParameterRules } from "./request-parameters.ts";
import { RestReader } from "./rest-reader.ts";

export interface RestOptions {
  readonly broker: Broker;
  readonly logger: Logger;
  readonly extensionPrefix: string;
  readonly runner: OperationRunner;
}

/** Every operation at its path under `/rest`, by GET and POST. */
export function registerRest(app: FastifyInstance, options: RestOptions): void {
  const callers = new ConnectionCallers("REST");
  for (const name of operationNames) {
    app.route({
      method: ["GET", "POST"],
      url: restPathOf(name),
      // A HEAD would run the operation.
      exposeHeadRoute: false,
      handler: name === "publish" ? createPublishHandler(options, callers) : createHandler(name, options, callers),
      errorHandler: createErrorHandler(name, options),
    });
  }
}

function createHandler(name: AskedOperation, options: RestOptions, callers: ConnectionCallers) {
  const rules = toParameterRules(operations[name], options.extensionPrefix);
  const context = { broker: options.broker, format: "RESTful" } as const;
  const send = name === "subscribe" ? sendIdentifier : sendResult;
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    try {
      const reader = new RestReader(readParameters(request, rules), rules, request.headers);
      const caller = callers.ofRequest(request);
      const result = await options.runner.run(name, { ...context, reader, caller });
      return send(request, reply, result);
    } catch (error) {
      return sendFailure(reply, error, { logger: options.logger, operation: name });
    }
  };
}

/** Without a promise: publishes are too many for one each. */
function createPublishHandler({ broker, logger, extensionPrefix }: RestOptions, callers: ConnectionCallers) {
  const operation = "publish";
  const rules = toParameterRules(operations[operation], extensionPrefix);
  const settle = (reply: FastifyReply, outcome: PublishOutcome): void => {
    if (outcome.status === "REFUSED") sendFailure(reply, outcome.error, { logger, operation });
    else sendText(reply, renderSendResult(outcome));
  };
  return (request: FastifyRequest, reply: FastifyReply): void => {
    try {
      const reader = new RestReader(readParameters(request, rules), rules, request.headers);
      broker.submit(callers.ofRequest(request), readPublishCall(reader), (outcome) => settle(reply, outcome));
    } catch (error) {
      sendFailure(reply, error, { logger, operation });
    }
  };
}

function sendResult(_request: FastifyRequest, reply: FastifyReply, result: unknown): FastifyReply {
  return sendText(reply, JSON.stringify(result));
}

function sendText(reply: FastifyReply, json: string): FastifyReply {
  return reply.header("content-type", jsonType).send(json);
}

function sendIdentifier(request: FastifyRequest, reply: FastifyReply, result: unknown): FastifyReply {
  addVary(reply, "accept");
  if (!prefersText(request.headers.accept)) return sendResult(request, reply, result);
  return reply.header("content-type", "text/plain; charset=utf-8").send(result);
}

/** Failures of the server before the handler runs, such as a Content-Type that is none. */
function createErrorHandler(name: OperationName, { logger }: RestOptions) {
  return (error: unknown, _request: FastifyRequest, reply: FastifyReply): void => {
    sendFailure(reply.status(200), fromFramework(error), { logger, operation: name });
  };
}
