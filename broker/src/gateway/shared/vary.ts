import type { FastifyReply } from "fastify";

/** Adds the name of a request header to the answer's `Vary`. */
export function addVary(reply: FastifyReply, name: string): FastifyReply {
  const earlier = reply.getHeader("vary");
  return reply.header("vary", earlier === undefined ? name : `${String(earlier)}, ${name}`);
}
