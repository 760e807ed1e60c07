import type { IncomingMessage, ServerResponse } from "node:http";
import { bodyBytesMax, receive, type ReceiverAnswer, type ReceiverOptions, toAnswer } from "./receiver.ts";
import type { WebhookHeaders } from "./verify-webhook.ts";

/** A request of node, or of Express with a body that `express.raw()` has read. */
export type NodeRequest = IncomingMessage & { readonly body?: unknown };

/** A handler for `node:http`, and for Express. In Express it goes before `express.json()`, which throws away the bytes that are signed. */
export function toNodeHandler(options: ReceiverOptions): (request: NodeRequest, response: ServerResponse) => void {
  return (request, response) => {
    void answerNode(request, options).then(({ status, headers, body }) =>
      response.writeHead(status, headers).end(body),
    );
  };
}

async function answerNode(request: NodeRequest, options: ReceiverOptions): Promise<ReceiverAnswer> {
  try {
    const rawBody = await readBody(request);
    if (rawBody === undefined) return toAnswer(413, { connection: "close" });
    return await receive({ method: request.method ?? "", headers: request.headers, rawBody }, options);
  } catch (error) {
    options.onError?.(error);
    return toAnswer(500);
  }
}

/** Undefined for a body that is too long. @throws Error if a parser has read it already. */
async function readBody(request: NodeRequest): Promise<string | Uint8Array | undefined> {
  const { body } = request;
  if (typeof body === "string" || body instanceof Uint8Array) return body;
  if (body !== undefined && request.readableEnded) {
    throw new Error("the body was parsed already: put this handler before express.json()");
  }
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** What this plugin uses of a Fastify instance. */
export interface FastifyLike {
  removeContentTypeParser(type: string): void;
  addContentTypeParser(
    type: string,
    options: { parseAs: "buffer"; bodyLimit: number },
    parser: (request: unknown, body: Buffer, done: (error: Error | null, body: Buffer) => void) => void,
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

/** A plugin for Fastify: `app.register(webhookPlugin, { path: "/hook", secret, onEvent })`. Its parser holds for this path only. */
export async function webhookPlugin(
  app: FastifyLike,
  { path, ...options }: ReceiverOptions & { readonly path: string },
): Promise<void> {
  app.removeContentTypeParser("application/json");
  app.addContentTypeParser("application/json", { parseAs: "buffer", bodyLimit: bodyBytesMax }, (_request, body, done) =>
    done(null, body),
  );
  const handler = async (request: FastifyRequestLike, reply: FastifyReplyLike): Promise<unknown> => {
    const rawBody = request.body instanceof Uint8Array ? request.body : "";
    const { status, headers, body } = await receive(
      { method: request.method, headers: request.headers, rawBody },
      options,
    );
    return reply
      .status(status)
      .headers({ ...headers })
      .send(body);
  };
  app.route({ method: ["POST", "OPTIONS"], url: path, handler });
}

/** A handler for servers that speak `Request` and `Response`: Deno, Bun, workers. */
export function toFetchHandler(options: ReceiverOptions): (request: Request) => Promise<Response> {
  return async (request) => {
    const rawBody = new Uint8Array(await request.arrayBuffer());
    const { status, headers, body } = await receive(
      { method: request.method, headers: request.headers, rawBody },
      options,
    );
    return new Response(body === "" ? null : body, { status, headers });
  };
}

/** A handler for Hono: `app.all("/hook", toHonoHandler({ secret, onEvent }))`. */
export function toHonoHandler(
  options: ReceiverOptions,
): (context: { readonly req: { readonly raw: Request } }) => Promise<Response> {
  const handle = toFetchHandler(options);
  return ({ req }) => handle(req.raw);
}
