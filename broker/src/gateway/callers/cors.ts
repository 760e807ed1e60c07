import type { IncomingHttpHeaders } from "node:http";
import { secretHeader } from "@stele/wire";
import type { FastifyReply, FastifyRequest } from "fastify";
import { addVary } from "../shared/vary.ts";
import type { OriginRule } from "./origin-rule.ts";

/** How long a browser keeps the answer to a preflight. Chromium keeps none longer than two hours. */
const preflightMaxAgeS = 7200;

/** Request headers that a page may set: the broker or a tracing proxy reads them. */
const requestHeaders: ReadonlySet<string> = new Set([
  "accept",
  "authorization",
  "content-type",
  "idempotency-key",
  "last-event-id",
  "traceparent",
  "tracestate",
]);

/** Headers of an answer that a page may read, besides those that every page may. */
const exposedHeaders = `stele-error-retry, retry-after, ${secretHeader}`;

/**
 * Lets pages of allowed origins read their answers (Fetch standard, CORS protocol). Credentials are never allowed. Returns true if the request was a
 * preflight of an allowed origin, which is answered here.
 */
export function answerCors(request: FastifyRequest, reply: FastifyReply, origins: OriginRule): boolean {
  if (!origins.isOpen) return false;
  // Also without an Origin header: a cache must not give one page the answer for another.
  addVary(reply, "origin");
  const { headers } = request.raw;
  const { origin } = headers;
  if (origin === undefined || !origins.allows(origin)) return false;
  reply.header("access-control-allow-origin", origin);
  if (request.method === "OPTIONS" && headers["access-control-request-method"] !== undefined) {
    answerPreflight(headers, reply);
    return true;
  }
  reply.header("access-control-expose-headers", exposedHeaders);
  return false;
}

function answerPreflight(headers: IncomingHttpHeaders, reply: FastifyReply): void {
  addVary(reply, "access-control-request-headers");
  reply.header("access-control-allow-methods", "GET, POST").header("access-control-max-age", String(preflightMaxAgeS));
  const allowed = allowedOf(headers["access-control-request-headers"]);
  if (allowed !== "") reply.header("access-control-allow-headers", allowed);
  // For a page of the public internet that calls a private address (Private Network Access).
  if (headers["access-control-request-private-network"] === "true")
    reply.header("access-control-allow-private-network", "true");
  reply.status(204).send();
}

/** The requested headers that a page may set. */
function allowedOf(asked = ""): string {
  const names = asked.split(",").map((name) => name.trim().toLowerCase());
  return names.filter((name) => requestHeaders.has(name)).join(", ");
}
