import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";

/** An upgrade request as Node emits it, detached from its HTTP parser. */
export interface UpgradeRequest {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  /** Bytes that followed the request's headers. */
  readonly head: Buffer;
}

/**
 * Serves a request as if it had not asked for an upgrade, which a server may ignore (RFC 9110, section 7.8). Java's HTTP client asks for `h2c` with
 * its first request, even if the request has a body. The headers go back into the socket without the Upgrade field, for a new parser.
 */
export function serveAsPlain(server: Server, { request, socket, head }: UpgradeRequest): void {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const [name = "", value = ""] = rawHeaders.slice(index, index + 2);
    if (name.toLowerCase() !== "upgrade") lines.push(`${name}: ${value}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]));
  server.emit(socket instanceof TLSSocket ? "secureConnection" : "connection", socket);
}
