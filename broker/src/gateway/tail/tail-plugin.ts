import type { FastifyInstance, FastifyReply } from "fastify";
import type { Logger } from "../../lib/logger.ts";
import { ConnectionCallers } from "../callers/connection-callers.ts";
import { reserveConnection } from "../in-flight/pipelining.ts";
import { parameterError } from "../shared/failure.ts";
import { sendFailure } from "../shared/send-failure.ts";
import { statusOf } from "../shared/status-of.ts";
import { framings } from "./framing.ts";
import { readTailRequest, type TailRequest } from "./tail-request.ts";
import type { Tails } from "./tails.ts";

export interface TailPluginOptions {
  readonly tails: Tails;
  readonly logger: Logger;
}

const methods = "GET, HEAD, OPTIONS";

/** `GET /tail`: sends events as they come, until the connection ends. */
export function registerTail(app: FastifyInstance, { tails, logger }: TailPluginOptions): void {
  const callers = new ConnectionCallers("tail");
  const refuse = (reply: FastifyReply, error: unknown): FastifyReply =>
    sendFailure(reply.status(statusOf(error)), error, { logger, operation: "tail" });
  app.route({
    method: "GET",
    url: "/tail",
    exposeHeadRoute: false,
    handler: async (request, reply) => {
      let release: (() => void) | undefined;
      try {
        const asked = readTailRequest(request.raw);
        release = reserve(reply);
        const { socket } = request.raw;
        await tails.open({
          caller: callers.ofRequest(request),
          request: asked,
          socket,
          answer: () => writeHead(reply, asked),
        });
        return reply;
      } catch (error) {
        release?.();
        return refuse(reply, error);
      }
    },
  });
  app.head("/tail", async (request, reply) => {
    try {
      const asked = readTailRequest(request.raw);
      await tails.authorize(callers.ofRequest(request), asked);
      return reply.headers(headersOf(asked)).send();
    } catch (error) {
      return refuse(reply, error);
    }
  });
  app.options("/tail", (_request, reply) => reply.status(204).header("allow", methods).send());
}

/** Reserves the connection for the tail: a later request ends the connection. Throws if the connection has another unanswered request. */
function reserve({ raw }: FastifyReply): () => void {
  const release = reserveConnection(raw);
  if (release !== undefined) return release;
  throw parameterError("a tail needs a connection of its own; this one has another unanswered request");
}

/** Writes the headers without a transfer encoding: the body ends with the connection. In a chunked body, an event could wait for the end of its chunk. */
function writeHead(reply: FastifyReply, asked: TailRequest): void {
  reply.headers(headersOf(asked)).hijack();
  const { raw } = reply;
  raw.removeHeader("transfer-encoding");
  for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) raw.setHeader(name, value);
  raw.setHeader("connection", "close");
  raw.writeHead(200);
  raw.flushHeaders();
}

function headersOf({ framing }: TailRequest): Readonly<Record<string, string>> {
  return {
    "content-type": framings[framing].contentType,
    "cache-control": "no-store, no-transform",
    // Tells nginx not to buffer; other proxies do not buffer event streams.
    "x-accel-buffering": "no",
  };
}
