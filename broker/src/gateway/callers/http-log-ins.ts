import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { FastifyInstance } from "fastify";
import type { Principal } from "../../engine/access/caller.ts";
import type { Broker } from "../../engine/broker.ts";
import { resetConnection } from "../shared/reset-connection.ts";
import { certificateOf } from "./client-certificate.ts";
import { readCredential } from "./credential.ts";
import { createForwardedFinder } from "./forwarded-address.ts";
import { cookieNameOf, findSession } from "./session-cookie.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The sender, identified by `Authorization` header, session cookie or certificate; over plain HTTP, undefined without any of them. */
    principal: Principal | undefined;
    /** Address of the client if a trusted proxy sent the request; else undefined. */
    forwardedFor: string | undefined;
  }
}

interface Held {
  readonly credential: string | undefined;
  readonly principal: Principal;
}

export interface HttpLogInOptions {
  readonly broker: Pick<Broker, "authenticate">;
  readonly basePath: string;
  /** Addresses and networks of proxies whose `X-Forwarded-For` is trusted; none if left out. */
  readonly trustedProxies?: readonly string[] | undefined;
  /** Ways to log in to the console. If left out, cookies are ignored. */
  readonly logIns?: readonly unknown[] | undefined;
}

/**
 * Authenticates each request that has a credential or comes over TLS, before its body is read. Unless the credential is rejected, the result is
 * reused while the connection sends the same credential.
 */
export function registerLogIns(app: FastifyInstance, options: HttpLogInOptions): void {
  const { broker, basePath, trustedProxies = [], logIns } = options;
  const findForwarded = createForwardedFinder(trustedProxies);
  const sessionCookie = logIns && cookieNameOf(basePath, "session");
  const bySocket = new WeakMap<Socket, Held>();
  app.decorateRequest("principal", undefined);
  app.decorateRequest("forwardedFor", undefined);
  app.addHook("onRequest", (request, reply, done) => {
    const { authorization } = request.headers;
    const { socket } = request.raw;
    const session = sessionCookie === undefined ? undefined : findSession(request.headers, sessionCookie);
    const credential = readCredential(authorization) ?? session;
    // A shared cache stores no answer to `Authorization` (RFC 9111, section 3.5), but would store one to a cookie.
    if (session !== undefined) reply.header("cache-control", "no-store");
    request.forwardedFor = findForwarded(request.raw);
    if (credential === undefined && !(socket instanceof TLSSocket)) return done();
    const held = bySocket.get(socket);
    // A rejected credential is checked again: its key may have been created since.
    if (held !== undefined && held.credential === credential && held.principal.kind !== "rejected") {
      request.principal = held.principal;
      return done();
    }
    const take = (principal: Principal): void => {
      if (principal.kind === "rejected" && principal.isClosed === true) return resetConnection(socket);
      request.principal = principal;
      bySocket.set(socket, { credential, principal });
      done();
    };
    const found = broker.authenticate(credential, {
      address: request.forwardedFor ?? socket.remoteAddress,
      protocol: "HTTP",
      certificate: certificateOf(socket),
    });
    if (found instanceof Promise) void found.then(take);
    else take(found);
  });
}
