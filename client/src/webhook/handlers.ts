import { bodyBytesMax, type NodeRequest, readFetchBody, readNodeBody } from "./read-body.ts";
import { receive, type ReceiverOptions } from "./receiver.ts";
import type { WebhookHeaders } from "./verify-webhook.ts";

/** The part of a `ServerResponse` of Node.js that `toNodeHandler` uses. */
export interface NodeResponse {
  readonly headersSent: boolean;
  writeHead(status: number, headers: Record<string, string>): { end(body: string): unknown };
}

/** A handler for `node:http`, and for Express. In Express, put it before `express.json()`, which discards the signed bytes. */
export function toNodeHandler(options: ReceiverOptions): (request: NodeRequest, response: NodeResponse) => void {
  return (request, response) => {
    const { method = "", headers } = request;
    // A middleware with a time limit may have answered meanwhile.
    void receive({ method, headers, readBody: () => readNodeBody(request) }, options).then((answer) =>
      response.headersSent ? response : response.writeHead(answer.status, { ...answer.headers }).end(answer.body),
    );
  };
}

/** The part of a Fastify instance that `webhookPlugin` uses. */
export interface FastifyLike {
  removeContentTypeParser(type: string): void;
  addContentTypeParser(
    type: string,
    options: { parseAs: "buffer"; bodyLimit: number },
    parser: (request: unknown, body: Uint8Array, done: (error: Error | null, body: Uint8Array) => void) => void,
  ): void;
  route(route: {
    method: string[];
    url: string;
    handler: (request: FastifyRequestLike, reply: FastifyReplyLike) => Promise<unknown>;
  }): unknown;
}

interface FastifyRequestLike {
  readonly method: string;
  readonly headers: WebhookHeaders;
  readonly body: unknown;
}

interface FastifyReplyLike {
  status(code: number): FastifyReplyLike;
  headers(values: Record<string, string>): FastifyReplyLike;
  send(body: string): unknown;
}

/** A plugin for Fastify: `app.register(webhookPlugin, { path: "/hook", secret, onEvent })`. Its body parser applies to this path only. */
export async function webhookPlugin(
  app: FastifyLike,
  { path, ...options }: ReceiverOptions & { readonly path: string },
): Promise<void> {
  app.removeContentTypeParser("application/json");
  app.addContentTypeParser("application/json", { parseAs: "buffer", bodyLimit: bodyBytesMax }, (_request, body, done) =>
    done(null, body),
  );
  const handler = async (request: FastifyRequestLike, reply: FastifyReplyLike): Promise<unknown> => {
    const { method, headers } = request;
    const rawBody = request.body instanceof Uint8Array ? request.body : ""; // A request without a body.
    const answer = await receive({ method, headers, readBody: async () => rawBody }, options);
    return reply
      .status(answer.status)
      .headers({ ...answer.headers })
      .send(answer.body);
  };
  app.route({ method: ["POST", "OPTIONS"], url: path, handler });
}

/** A handler for servers that use `Request` and `Response`: Deno, Bun, workers. */
export function toFetchHandler(options: ReceiverOptions): (request: Request) => Promise<Response> {
  return async (request) => {
    const { method, headers } = request;
    const answer = await receive({ method, headers, readBody: () => readFetchBody(request) }, options);
    return new Response(answer.body === "" ? null : answer.body, answer);
  };
}

/** A handler for Hono: `app.all("/hook", toHonoHandler({ secret, onEvent }))`. */
export function toHonoHandler(
  options: ReceiverOptions,
): (context: { readonly req: { readonly raw: Request } }) => Promise<Response> {
  const handle = toFetchHandler(options);
  return ({ req }) => handle(req.raw);
}
