import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { FastifyInstance } from "fastify";
import type { Principal } from "../../engine/access/caller.ts";
import type { Broker } from "../../engine/broker.ts";
import { certificateOf } from "./client-certificate.ts";
import { readCredential } from "./credential.ts";
import type { FindForwarded } from "./forwarded-address.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Whoever sent it, by its `Authorization` header or certificate; undefined without one. */
    principal: Principal | undefined;
    /** Address of the client where a trusted proxy sent it; else undefined. */
    forwardedFor: string | undefined;
  }
}

interface Held {
  readonly header: string | undefined;
  readonly principal: Principal;
}

/** Finds out who sends each request, before its body is read. A connection that gives the same credential again is not asked about again. */
export function registerLogIns(
  app: FastifyInstance,
  broker: Pick<Broker, "authenticate">,
  findForwarded: FindForwarded,
): void {
  const bySocket = new WeakMap<Socket, Held>();
  app.decorateRequest("principal", undefined);
  app.decorateRequest("forwardedFor", undefined);
  app.addHook("onRequest", (request, _reply, done) => {
    const { authorization: header } = request.headers;
    const { socket } = request.raw;
    request.forwardedFor = findForwarded(request.raw);
    if (header === undefined && !(socket instanceof TLSSocket)) return done();
    const held = bySocket.get(socket);
    // What was wrong may be right by now: the key may be a new one.
    if (held !== undefined && held.header === header && held.principal.kind !== "rejected") {
      request.principal = held.principal;
      return done();
    }
    const take = (principal: Principal): void => {
      if (principal.kind === "rejected" && principal.isClosed === true) return void socket.resetAndDestroy();
      request.principal = principal;
      bySocket.set(socket, { header, principal });
      done();
    };
    const found = broker.authenticate(readCredential(header), {
      address: request.forwardedFor ?? socket.remoteAddress,
      protocol: "HTTP",
      certificate: certificateOf(socket),
    });
    if (found instanceof Promise) void found.then(take);
    else take(found);
  });
}
