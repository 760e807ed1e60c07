import { idempotencyKeyHeader, quote } from "@stele/wire";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ConnectionCallers } from "../../callers/connection-callers.ts";
import type { FindHolding } from "../../in-flight/in-flight.ts";
import { jsonValueBytes, smallBytesMax } from "../../limits.ts";
import { BodyRefused, BodyTooLong, type RawBody } from "../collect-body.ts";
import { findEncodingRefusal, parseContentType } from "../content-type.ts";
import { isJsonObject, parseJson } from "../decode-text.ts";
import { toFailure } from "../failure.ts";
import { leaveNode } from "../leave-node.ts";
import { type JsonShape, measureJson, repeatsName } from "../json-shape.ts";
import { fromFramework } from "../from-framework.ts";
import { jsonType } from "../send-failure.ts";
import { answerBody } from "./answer-body.ts";
import type { RpcEndpoint } from "./endpoint.ts";
import { type RpcError, type RpcOutcome, toResponse } from "./message.ts";
import { findTraceParentHeader } from "../trace-parent-header.ts";
import { RunningMembers } from "./running-members.ts";
import { Slices } from "./slices.ts";

const mediaTypes = new Set(["application/json", "application/json-rpc", "application/jsonrequest"]);

interface Context {
  readonly callers: ConnectionCallers;
  readonly endpoint: RpcEndpoint;
  readonly slices: Slices;
  readonly runningMembers: RunningMembers;
  readonly findHolding: FindHolding;
}

/** JSON-RPC 2.0 by POST at the endpoint's path. */
export function registerRpc(app: FastifyInstance, endpoint: RpcEndpoint, findHolding: FindHolding): void {
  const { path, protocol } = endpoint;
  const context = {
    endpoint,
    callers: new ConnectionCallers(protocol),
    slices: new Slices(),
    runningMembers: new RunningMembers(),
    findHolding,
  };
  app.post(path, { errorHandler: createErrorHandler(endpoint) }, (request, reply) =>
    answerPost(request, reply, context),
  );
  app.route({
    method: ["GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"],
    url: path,
    exposeHeadRoute: false,
    handler: (_request, reply) =>
      sendError(reply.status(405).header("allow", "POST"), endpoint.toProtocolError("invalidRequest", "use POST")),
  });
}

async function answerPost(request: FastifyRequest, reply: FastifyReply, context: Context): Promise<FastifyReply> {
  const bodyBytes = request.body instanceof Buffer ? request.body.length : 0;
  const parsed = parseRequest(request, context);
  if ("error" in parsed) return sendError(reply, parsed.error);
  const answer = await answerBody(parsed.result, {
    ...context,
    bodyBytes,
    caller: context.callers.ofRequest(request),
    traceParent: findTraceParentHeader(request.headers),
    hasKeyHeader: request.headers[idempotencyKeyHeader] !== undefined,
    findHolding: () => context.findHolding(request),
    onError: (error) => leaveNodeAfter(reply, error),
  });
  if (answer === undefined) return reply.status(204).send();
  return reply.header("content-type", jsonType).send(answer);
}

function parseRequest(request: FastifyRequest, { endpoint, findHolding }: Context): RpcOutcome {
  // createBodyCollector sets the body; Fastify types it as unknown.
  const body = request.body as RawBody;
  const refusal = findRefusal(request, body);
  if (refusal !== undefined) return { error: endpoint.toProtocolError("invalidRequest", refusal) };
  if (body instanceof BodyRefused) return { error: endpoint.toBusyError(body.details) };
  const bytes = body instanceof Buffer ? body : Buffer.alloc(0);
  // Only the parsed values are needed while the request runs: free the bytes.
  request.body = undefined;
  const shape = measureJson(bytes);
  if (shape.refusal !== undefined) return { error: endpoint.toProtocolError("parseError", shape.refusal) };
  if (bytes.length > smallBytesMax && !findHolding(request).tryTake(shape.values * jsonValueBytes)) {
    return { error: endpoint.toBusyError("the broker has no memory for so many values at the moment") };
  }
  return tryParse(bytes, shape, endpoint);
}

function tryParse(bytes: Buffer, shape: JsonShape, endpoint: RpcEndpoint): RpcOutcome {
  try {
    const result = parseJson(bytes);
    if (!repeatsName(shape, result)) return { result };
    return { error: endpoint.toProtocolError("invalidRequest", "an object of the body has a member more than once") };
  } catch (error) {
    const failure = toFailure(error, endpoint.logger, { operation: toOperation(endpoint) });
    return { error: endpoint.toProtocolError("parseError", failure.message) };
  }
}

function findRefusal(request: FastifyRequest, body: RawBody): string | undefined {
  const { mediaType } = parseContentType(request.headers["content-type"]);
  if (!mediaTypes.has(mediaType)) return `content type ${quote(mediaType)} is not application/json`;
  const refusal = findEncodingRefusal(request.headers);
  if (refusal !== undefined) return refusal;
  return body instanceof BodyTooLong ? `the request body is over ${body.bytesMax} bytes` : undefined;
}

/** Closes the connection if another node may succeed. The `data` of a broker error has its code. */
function leaveNodeAfter(reply: FastifyReply, { data }: RpcError): void {
  if (isJsonObject(data) && typeof data["code"] === "number") leaveNode(reply, data["code"]);
}

function sendError(reply: FastifyReply, error: RpcError): FastifyReply {
  leaveNodeAfter(reply, error);
  return reply.header("content-type", jsonType).send(JSON.stringify(toResponse(null, { error })));
}

/** Answers a request that fails as a whole, for example because Fastify refuses its Content-Type before the handler runs. */
function createErrorHandler(endpoint: RpcEndpoint) {
  return (error: unknown, _request: FastifyRequest, reply: FastifyReply): void => {
    const failure = toFailure(fromFramework(error), endpoint.logger, { operation: toOperation(endpoint) });
    const name = failure.kind === "invalid" ? "invalidRequest" : "internalError";
    sendError(reply.status(200), endpoint.toProtocolError(name, failure.message));
  };
}

/** What log lines give as the operation if a request fails as a whole: its path, because no method is known. */
function toOperation({ path }: RpcEndpoint): string {
  return path.slice(1);
}
