import { type OperationName, operationNames, operations, restPathOf, secretHeader } from "@stele/wire";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Broker, PublishCall, PublishOutcome, TransactionOutcome } from "../../engine/broker.ts";
import type { Logger } from "../../lib/logger.ts";
import { ConnectionCallers } from "../callers/connection-callers.ts";
import { fromFramework } from "../shared/from-framework.ts";
import { type NonPublishOperation, readPublishCall } from "../shared/operation-handlers.ts";
import { renderSendResult } from "../shared/results.ts";
import type { OperationRunner } from "../shared/run-operation.ts";
import { jsonType, sendFailure } from "../shared/send-failure.ts";
import { statusOf } from "../shared/status-of.ts";
import { addVary } from "../shared/vary.ts";
import { prefersText } from "./accept.ts";
import { Slice, Slices } from "../shared/rpc/slices.ts";
import { isCloudEventRequest, readCloudEvents } from "./cloud-events.ts";
import { readParameters, readQuery, toParameterRules } from "./request-parameters.ts";
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
      // A HEAD request would run the operation.
      exposeHeadRoute: false,
      handler: name === "publish" ? createPublishHandler(options, callers) : createHandler(name, options, callers),
      errorHandler: createErrorHandler(name, options),
    });
  }
}

function createHandler(name: NonPublishOperation, options: RestOptions, callers: ConnectionCallers) {
  const rules = toParameterRules(operations[name], options.extensionPrefix);
  const context = { broker: options.broker, format: "RESTful" } as const;
  const send = name === "subscribe" ? sendIdentifier : sendResult;
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    try {
      const reader = new RestReader(readParameters(request, rules), rules, request.headers);
      const caller = callers.ofRequest(request);
      const onSecret = (secret: string): void =>
        void reply.header(secretHeader, secret).header("cache-control", "no-store");
      const result = await options.runner.run(name, { ...context, reader, caller, onSecret });
      return send(request, reply, result);
    } catch (error) {
      return sendFailure(reply, error, { logger: options.logger, operation: name });
    }
  };
}

/** Uses a callback: at thousands of publishes per second, a promise for each would cost too much. */
function createPublishHandler({ broker, logger, extensionPrefix }: RestOptions, callers: ConnectionCallers) {
  const operation = "publish";
  const rules = toParameterRules(operations[operation], extensionPrefix);
  const settle = (reply: FastifyReply, outcome: PublishOutcome): void => {
    if (outcome.status === "REFUSED") sendFailure(reply, outcome.error, { logger, operation });
    else sendText(reply, renderSendResult(outcome));
  };
  const publishCloudEvents = createCloudEventHandler({ broker, logger, extensionPrefix }, callers);
  return (request: FastifyRequest, reply: FastifyReply): void => {
    if (isCloudEventRequest(request)) {
      void publishCloudEvents(request, reply); // It answers every failure.
      return;
    }
    try {
      const reader = new RestReader(readParameters(request, rules), rules, request.headers);
      broker.submit(callers.ofRequest(request), readPublishCall(reader), (outcome) => settle(reply, outcome));
    } catch (error) {
      sendFailure(reply, error, { logger, operation });
    }
  };
}

/** Answers a failure with an HTTP error status, as senders of CloudEvents expect. Status 202 means that the outcome of the publish is not known yet. */
function createCloudEventHandler(options: Omit<RestOptions, "runner">, callers: ConnectionCallers) {
  const { broker, logger, extensionPrefix } = options;
  const rules = toParameterRules(operations.publish, extensionPrefix);
  const slices = new Slices();
  const refuse = (reply: FastifyReply, error: unknown): void => {
    sendFailure(reply.status(statusOf(error)), error, { logger, operation: "publish" });
  };
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    try {
      const reader = new RestReader(readQuery(request), rules, request.headers);
      const events = readCloudEvents(request, reader, extensionPrefix);
      const caller = callers.ofRequest(request);
      if (events.kind === "one") {
        broker.submit(caller, events.call, (outcome) => {
          if (outcome.status === "REFUSED") refuse(reply, outcome.error);
          else sendText(reply.status(statuses[outcome.status]), renderSendResult(outcome));
        });
      } else {
        const calls = await events.read(new Slice(slices, caller));
        broker.submitAll(caller, calls, (outcome) => {
          if (outcome.status === "REFUSED") refuse(reply, outcome.error);
          else sendText(reply.status(statuses[outcome.status]), renderSendResults(calls, outcome));
        });
      }
    } catch (error) {
      refuse(reply, error);
    }
  };
}

const statuses = { SUCCESS: 200, TIMEOUT: 202 } as const;

function renderSendResults(calls: readonly PublishCall[], outcome: TransactionOutcome): string {
  const results =
    outcome.status === "SUCCESS"
      ? outcome.results
      : calls.map(({ topic }) => ({ topic, eventId: "", status: "TIMEOUT" }) as const);
  return `[${results.map(renderSendResult).join(",")}]`;
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

/** Answers a request that Fastify refuses before the handler runs, for example because of its Content-Type. */
function createErrorHandler(name: OperationName, { logger }: RestOptions) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const failure = fromFramework(error);
    const status = isCloudEventRequest(request) ? statusOf(failure) : 200;
    sendFailure(reply.status(status), failure, { logger, operation: name });
  };
}
