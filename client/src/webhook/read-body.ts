import { readBody } from "../lib/read-body.ts";
import type { WebhookHeaders } from "./verify-webhook.ts";

/** Longest body that the handlers read. It has room for a content of 8 MiB in Base64, the longest that a broker can be configured for. */
export const bodyBytesMax = 16 * 1024 * 1024;

/**
 * A request of Node.js, whose body a framework may have read already: the part of `IncomingMessage` that a handler uses. Programs for Deno, Bun and workers
 * have no types of Node.js.
 */
export interface NodeRequest {
  readonly method?: string | undefined;
  readonly headers: WebhookHeaders;
  readonly readableDidRead: boolean;
  iterator(options: { readonly destroyOnReturn: boolean }): AsyncIterable<unknown>;
  resume(): unknown;
  /** The body, if `express.raw()` or `express.text()` has read it. */
  readonly body?: unknown;
  /** The bytes, if a framework keeps them besides the parsed body. */
  readonly rawBody?: unknown;
}

/** A mistake in this server's program: something in front of the handler has read the body, so the signed bytes are gone. */
export class BodyAlreadyRead extends Error {}

/** The body of a request; undefined if it is too long. @throws BodyAlreadyRead if a parser has read the body already. */
export async function readNodeBody(request: NodeRequest): Promise<string | Uint8Array | undefined> {
  for (const read of [request.rawBody, request.body]) {
    if (typeof read === "string" || read instanceof Uint8Array) return read;
  }
  if (request.readableDidRead) {
    throw new BodyAlreadyRead(
      "the body was parsed already: put this handler before express.json() and other body parsers",
    );
  }
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  // By default, leaving the loop would close the connection before the answer is sent.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) {
      request.resume(); // Drops the rest, so that the answer arrives.
      return undefined;
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The body of a request; undefined if it is too long. @throws BodyAlreadyRead if something has read the body already. */
export async function readFetchBody(request: Request): Promise<Uint8Array | undefined> {
  if (request.bodyUsed) {
    throw new BodyAlreadyRead(
      "the body was read already: put this handler before validators and anything else that reads the body",
    );
  }
  return readBody(request.body?.getReader(), bodyBytesMax);
}
