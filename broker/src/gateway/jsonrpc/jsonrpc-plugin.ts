import { quote } from "@stele/wire";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { BodyTooLong, type RawBody } from "../shared/collect-body.ts";
import { parseContentType } from "../shared/content-type.ts";
import { decodeUtf8, parseJson } from "../shared/decode-text.ts";
import { toFailure } from "../shared/failure.ts";
import { fromFramework } from "../shared/from-framework.ts";
import { jsonType } from "../shared/send-failure.ts";
import { answerBody } from "./answer-body.ts";
import type { RpcOptions } from "./call-operation.ts";
import { toErrorResponse } from "./message.ts";
import { type RpcError, toProtocolError } from "./rpc-error.ts";

const path = "/jsonrpc";
const mediaTypes = new Set(["application/json", "application/json-rpc", "application/jsonrequest"]);

/** JSON-RPC 2.0 at POST `/jsonrpc`. */
export function registerJsonRpc(app: FastifyInstance, options: RpcOptions): void {
  app.post(path, { errorHandler: createErrorHandler(options) }, (request, reply) =>
    answerPost(request, reply, options),
  );
  app.route({
    method: ["GET", "PUT", "PATCH", "DELETE"],
    url: path,
    exposeHeadRoute: false,
    handler: (_request, reply) =>
      sendError(reply.status(405).header("allow", "POST"), toProtocolError("invalidRequest", "use POST")),
  });
}

async function answerPost(request: FastifyRequest, reply: FastifyReply, options: RpcOptions): Promise<FastifyReply> {
  // What createBodyCollector gives; Fastify types it as unknown.
  const body = request.body as RawBody;
  const refusal = findRefusal(request, body);
  if (refusal !== undefined) return sendError(reply, toProtocolError("invalidRequest", refusal));
  const parsed = tryParse(body, options);
  if ("error" in parsed) return sendError(reply, parsed.error);
  const answer = await answerBody(parsed.value, options);
  if (answer === undefined) return reply.status(204).send();
  return reply.header("content-type", jsonType).send(JSON.stringify(answer));
}

function findRefusal(request: FastifyRequest, body: RawBody): string | undefined {
  const type = parseContentType(request.headers["content-type"]);
  if (!mediaTypes.has(type.mediaType)) return `content type ${quote(type.mediaType)} is not application/json`;
  if (!type.isUtf8) return "the body's character set is not UTF-8";
  return body instanceof BodyTooLong ? `the request body is over ${body.bytesMax} bytes` : undefined;
}

function tryParse(body: RawBody, options: RpcOptions): { readonly value: unknown } | { readonly error: RpcError } {
  try {
    return { value: parseJson(body instanceof Buffer ? decodeUtf8(body) : "") };
  } catch (error) {
    const failure = toFailure(error, options.logger, { operation: "jsonrpc" });
    return { error: toProtocolError("parseError", failure.message) };
  }
}

function sendError(reply: FastifyReply, error: RpcError): FastifyReply {
  return reply.header("content-type", jsonType).send(JSON.stringify(toErrorResponse(null, error)));
}

/** Failures of the server before the handler runs, such as a Content-Type that is none. */
function createErrorHandler({ logger }: RpcOptions) {
  return (error: unknown, _request: FastifyRequest, reply: FastifyReply): void => {
    const failure = toFailure(fromFramework(error), logger, { operation: "jsonrpc" });
    const isRequestsFault = failure.kind === "invalid";
    sendError(
      reply.status(200),
      toProtocolError(isRequestsFault ? "invalidRequest" : "internalError", failure.message),
    );
  };
}
