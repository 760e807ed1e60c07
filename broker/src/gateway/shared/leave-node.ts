import { errorCatalogue, type ErrorDefinition } from "@stele/wire";
import type { FastifyReply } from "fastify";
import { isAlone } from "../in-flight/pipelining.ts";

/** Failures of this node: another one may take the same call. A quota is the caller's at every node. */
const codes: ReadonlySet<number> = new Set(
  Object.values<ErrorDefinition>(errorCatalogue)
    .filter(({ kind, retry }) => retry && (kind === "unavailable" || kind === "exhausted"))
    .map(({ code }) => code)
    .filter((code) => code !== errorCatalogue.overQuota.code),
);

/**
 * Ends the connection with the answer if that says that this node cannot take the call now (RFC 9112, section 9.6), so that a load balancer
 * gives the client another node. To be called before the answer is sent. Answers behind it would be lost, so with any the connection stays.
 */
export function leaveNode(reply: FastifyReply, code: number): void {
  if (codes.has(code) && isAlone(reply.raw)) reply.header("connection", "close");
}
