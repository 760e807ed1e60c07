import { createServer as createHttp, type RequestListener, type Server } from "node:http";
import { createServer as createHttps } from "node:https";
import type { Broker } from "../engine/broker.ts";
import {
  headerBytesMax,
  headersTimeoutMs,
  keepAliveTimeoutMs,
  requestTimeoutMs,
  timeoutCheckIntervalMs,
} from "./limits.ts";
import { closeFloods } from "./shared/connection/flood-gate.ts";
import type { TlsServerOptions } from "./shared/connection/tls/renewed-certificate.ts";
import { limitHeaders } from "./shared/header-limit.ts";

/** Node's server for HTTP, or for HTTPS if `tls` is given, with the limits of every listener. */
export function createServer(
  tls: TlsServerOptions | undefined,
  handler: RequestListener,
  broker: Pick<Broker, "mayConnect">,
): Server {
  const limits = {
    maxHeaderSize: headerBytesMax,
    headersTimeout: headersTimeoutMs,
    connectionsCheckingInterval: timeoutCheckIntervalMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    requestTimeout: requestTimeoutMs,
    // Node would answer 400 without a body, and only to requests that ask for no upgrade. The caller guard refuses them all.
    requireHostHeader: false,
  };
  const server =
    tls === undefined
      ? createHttp(limits, handler)
      : createHttps({ ...tls, ...limits, handshakeTimeout: headersTimeoutMs }, handler);
  // Node would answer 417 without a body. A server may ignore an expectation that it does not know (RFC 9110, section 10.1.1).
  server.on("checkExpectation", (request, response) => server.emit("request", request, response));
  limitHeaders(server);
  closeFloods(server, broker);
  return server;
}
