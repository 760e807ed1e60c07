import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";

/** A request that asked for an upgrade, as the server hands it over: its parser is gone. */
export interface UpgradeRequest {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  /** What came after its head. */
  readonly head: Buffer;
}

/**
 * Serves a request as if it had not asked for an upgrade, which a server may ignore (RFC 9110, section 7.8). Java's client asks for `h2c` with
 * its first request, also with one that has a body. The head goes back to the connection without the Upgrade field, for a new parser.
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
