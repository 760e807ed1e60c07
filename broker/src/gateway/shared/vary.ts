import type { FastifyReply } from "fastify";

/** Adds a request header that the answer depends on to those that are named already. */
export function addVary(reply: FastifyReply, name: string): FastifyReply {
  const earlier = reply.getHeader("vary");
  return reply.header("vary", earlier === undefined ? name : `${String(earlier)}, ${name}`);
}
