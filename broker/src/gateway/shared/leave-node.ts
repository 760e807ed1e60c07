import { errorCatalogue, type ErrorDefinition } from "@stele/wire";
import type { FastifyReply } from "fastify";
import { isAlone } from "../in-flight/pipelining.ts";

/** Errors after which another node may accept the same call. A quota is the caller's on every node, so its error is not among them. */
const codes: ReadonlySet<number> = new Set(
  Object.values<ErrorDefinition>(errorCatalogue)
    .filter(({ kind, retry }) => retry && (kind === "unavailable" || kind === "exhausted"))
    .map(({ code }) => code)
    .filter((code) => code !== errorCatalogue.overQuota.code),
);

/**
 * If this node cannot take the call now, closes the connection after the answer that says so (RFC 9112, section 9.6): a load balancer then gives the client
 * another node. Call it before the answer is sent. The connection stays if later requests wait on it: their answers would be lost.
 */
export function leaveNode(reply: FastifyReply, code: number): void {
  if (codes.has(code) && isAlone(reply.raw)) reply.header("connection", "close");
}
