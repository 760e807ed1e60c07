import type { Server, Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { Connections } from "./connections.ts";
import { connectionsWaitingMax } from "../../limits.ts";
import { toHostPort } from "../../../lib/host.ts";
import { closeFloods } from "./flood-gate.ts";
import { closeGraceMs, probeAfterMs } from "./limits.ts";
import type { Place } from "./listener.ts";

/** The system probes silent connections, so that the connection of a vanished client ends. */
export const socketOptions = {
  noDelay: true,
  allowHalfOpen: true,
  keepAlive: true,
  keepAliveInitialDelay: probeAfterMs,
};

/** A server of sockets that speak one protocol. */
export class SocketServer {
  readonly #server: Server;
  readonly #connections: Connections;
  /** Open sockets, including those still in the TLS handshake. */
  readonly #sockets = new Set<Socket>();
  #draining: Promise<void> | undefined;

  constructor(server: Server, connections: Connections) {
    this.#server = server;
    this.#connections = connections;
    const { connectionsMax, logger, protocol } = connections.options;
    server.maxConnections = connectionsMax;
    server.on("drop", (dropped) => connections.refused(dropped?.remoteAddress));
    server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    closeFloods(server, connections.options.broker);
    // A connection that cannot be accepted, for lack of descriptors or memory, must not end the process. `listen` reports a server that cannot listen.
    server.on("error", (error) => {
      if (server.listening) logger.error(`${protocol} connection not accepted`, { error });
    });
  }

  /** Resolves with the address, as clients write it. */
  async listen({ host, port }: Place, scheme: string): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ host, port, backlog: connectionsWaitingMax }, () => {
        this.#server.off("error", reject);
        resolve();
      });
    });
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("a TCP server has no TCP address");
    return `${scheme}://${toHostPort(address.address, address.port)}`;
  }

  /**
   * Serves for `delayMs`. Then stops accepting, ends the protocol's connections over every transport, and resolves when every socket of this server is
   * closed.
   */
  async drain(delayMs = 0): Promise<void> {
    this.#draining ??= this.#drain(delayMs);
    await this.#draining;
  }

  async #drain(delayMs: number): Promise<void> {
    // Even if this server does not listen: the connections over WebSocket end with it.
    if (delayMs > 0) await pause(delayMs);
    const closed = new Promise<void>((resolve) => void this.#server.close(() => resolve()));
    await this.#connections.endAll();
    // A socket still in the TLS handshake belongs to no connection yet, so `endAll` does not reach it.
    setTimeout(() => this.#destroySockets(), closeGraceMs).unref();
    await closed;
  }

  #destroySockets(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}
