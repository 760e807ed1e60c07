import { type IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { BrokerError } from "@stele/wire";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { WebSocket, WebSocketServer } from "ws";
import type { Logger } from "../../lib/logger.ts";
import { ConnectionCallers } from "../callers/connection-callers.ts";
import type { MemoryBudget } from "../in-flight/memory-budget.ts";
import { webSocketChunkBytes, webSocketChunksMax, webSocketFragmentsMax, webSocketPartBytes } from "../limits.ts";
import { toPath } from "../shared/base-path.ts";
import { probeAfterMs } from "../shared/connection/limits.ts";
import { UnfinishedInput } from "../shared/connection/memory.ts";
import type { UpgradeRoute } from "../shared/connection/upgrade.ts";
import { parameterError } from "../shared/failure.ts";
import { hasTooManyHeaders } from "../shared/header-limit.ts";
import { isAnswering } from "../shared/is-answering.ts";
import { sendFailure } from "../shared/send-failure.ts";
import { answerPings } from "./answer-pings.ts";
import { serveAsPlain, type UpgradeRequest } from "./plain-request.ts";

/** Close code of an endpoint that goes away (RFC 6455, section 7.4.1). */
const goingAway = 1001;

/** Header of a client's control frame, with its mask (RFC 6455, section 5.2). */
const controlHeadBytes = 6;

/**
 * Whether Node emits an upgrade request with a body before it has read the body, with a stream in place of the socket, as it does since version 25. Under such
 * a Node, the server declines these upgrades. Known limit: Node then loses a request that came in the same packet as the end of the body, and closes the
 * connection once it is idle.
 */
const hidesSocketOfBody = Number.parseInt(process.versions.node, 10) >= 25;

export interface WebSocketsOptions {
  readonly routes: readonly UpgradeRoute[];
  /** Prefix of every path. */
  readonly basePath: string;
  readonly logger: Logger;
  /** Counts the memory of unfinished messages; when memory runs out, the slowest connections end. */
  readonly budget: Pick<MemoryBudget, "createHolding">;
}

/**
 * WebSocket connections on the HTTP port. The request that opens a connection passes through the server's routes like any other, so the caller
 * guard and the in-flight accounting apply to it.
 */
export class WebSockets {
  readonly #options: WebSocketsOptions;
  /** Requests whose connection waits to be upgraded. */
  readonly #upgrades = new WeakMap<IncomingMessage, UpgradeRequest>();
  readonly #open = new Set<WebSocket>();
  readonly #sockets = new WeakSet<Socket>();
  #isDraining = false;

  constructor(app: FastifyInstance, options: WebSocketsOptions) {
    this.#options = options;
    const { routes } = options;
    if (routes.length === 0) return;
    if (hidesSocketOfBody)
      Object.assign(app.server, { shouldUpgradeCallback: (request: IncomingMessage) => !hasBody(request) });
    app.server.on("upgrade", (request, socket, head) => this.#take(app, { request, socket, head }));
    app.register(
      async (scope) => {
        const { WebSocketServer } = await import("ws");
        for (const route of routes) {
          const { messageBytesMax, subprotocols } = route;
          const handleProtocols = (offered: Set<string>) => subprotocols.find((name) => offered.has(name)) ?? false;
          const options = { noServer: true, autoPong: false, maxPayload: messageBytesMax, handleProtocols };
          const server = new WebSocketServer({ ...options, ...toPartLimits(messageBytesMax) });
          this.#register(scope, route, server);
        }
      },
      { prefix: options.basePath },
    );
  }

  /** Whether the connection is a WebSocket. */
  has(socket: Socket): boolean {
    return this.#sockets.has(socket);
  }

  /**
   * Lets the protocols end their connections, then asks each peer that is left to close. After a close frame, a protocol could neither say goodbye nor
   * acknowledge what it reads.
   */
  async drain(): Promise<void> {
    this.#isDraining = true;
    await Promise.all(this.#options.routes.map((route) => route.endAll()));
    for (const webSocket of this.#open) webSocket.close(goingAway);
  }

  /** Ends every connection. */
  close(): void {
    for (const webSocket of this.#open) webSocket.terminate();
  }

  #take(app: FastifyInstance, upgrade: UpgradeRequest): void {
    const { request, socket } = upgrade;
    // Node has removed its own error listener; without one, a client's reset would end the process. A connection may ask for several upgrades.
    if (socket.listenerCount("error") === 0) socket.on("error", () => socket.destroy());
    // An answer now would overtake the one to an earlier request.
    if (isAnswering(request.socket)) return void socket.destroy();
    // Without its Content-Length, the body of a request would be served as the next request.
    if (!hasTooManyHeaders(request) && !this.#isOffered(request)) return serveAsPlain(app.server, upgrade);
    this.#upgrades.set(request, upgrade);
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(request.socket);
    // `end` alone would leave the connection open for as long as the client likes, and the server could not close meanwhile.
    response.once("finish", () => request.socket.destroySoon());
    app.routing(request, response);
  }

  /** Whether a request without a body asks for WebSocket at one of the routes. */
  #isOffered(request: IncomingMessage): boolean {
    const { method, url = "", headers } = request;
    if (headers.upgrade?.toLowerCase() !== "websocket" || hasBody(request)) return false;
    const path = toPath(url);
    return method === "GET" && this.#options.routes.some((route) => path === `${this.#options.basePath}${route.path}`);
  }

  #register(scope: FastifyInstance, route: UpgradeRoute, server: WebSocketServer): void {
    const callers = new ConnectionCallers(route.protocol);
    scope.get(route.path, { exposeHeadRoute: false }, (request, reply) => {
      const upgrade = this.#upgrades.get(request.raw);
      if (upgrade === undefined) {
        return this.#refuse(reply.status(426).header("upgrade", "websocket"), parameterError("use WebSocket"));
      }
      const refusal = findRefusal(request, route);
      if (refusal !== undefined) return this.#refuse(reply.status(400), parameterError(refusal));
      if (this.#isDraining) return this.#refuse(reply.status(503), stopping());
      reply.hijack();
      request.response.detachSocket(request.raw.socket);
      server.handleUpgrade(request.raw, upgrade.socket, upgrade.head, (webSocket) => {
        this.#open.add(webSocket);
        webSocket.once("close", () => this.#open.delete(webSocket));
        // A peer that breaks the protocol ends its own connection; without a listener the error would end the process.
        webSocket.on("error", (error) => this.#options.logger.debug("websocket failed", { path: route.path, error }));
        const { socket } = request.raw;
        this.#sockets.add(socket);
        socket.setKeepAlive(true, probeAfterMs);
        this.#countUnfinished(webSocket, socket);
        answerPings(webSocket);
        route.accept({ webSocket, caller: callers.of(socket, { forwardedFor: request.forwardedFor }) });
      });
      return reply;
    });
  }

  /** Counts the memory of each message until it is complete; only then the protocol sees it. */
  #countUnfinished(webSocket: WebSocket, socket: Socket): void {
    const end = (): void => webSocket.terminate();
    const unfinished = new UnfinishedInput(() => this.#options.budget.createHolding(), { socket, end });
    let bytes = 0;
    let chunks = 0;
    const hold = (nowBytes: number, nowChunks: number): void => {
      [bytes, chunks] = [Math.max(nowBytes, 0), nowChunks];
      unfinished.hold(bytes + chunks * webSocketChunkBytes);
    };
    // Prepended, so that it counts the chunk before ws parses it. A complete message then resets the count to 0, so bytes that follow it in the same chunk
    // are not counted.
    socket.prependListener("data", (chunk: Buffer) => hold(bytes + chunk.length, chunks + 1));
    webSocket.on("message", () => hold(0, 0));
    for (const control of ["ping", "pong"] as const) {
      // A control frame comes only after whole frames, so ws has joined the chunks of each earlier fragment.
      webSocket.on(control, (data: Buffer) => hold(bytes - data.length - controlHeadBytes, 0));
    }
    webSocket.once("close", () => unfinished.release());
  }

  #refuse(reply: FastifyReply, error: BrokerError): FastifyReply {
    const context = { logger: this.#options.logger, operation: "upgrade" };
    return sendFailure(reply.header("connection", "close"), error, context);
  }
}

/**
 * Bounds the parts of an unfinished message. A short part takes many times its bytes in memory, and ws removes the chunks of a frame one by one from
 * the front of an array: 50,000 take three seconds.
 */
function toPartLimits(messageBytesMax: number) {
  const long = Math.ceil(messageBytesMax / webSocketPartBytes);
  return {
    maxBufferedChunks: Math.max(webSocketChunksMax, long),
    maxFragments: Math.max(webSocketFragmentsMax, long),
  };
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
}

function stopping(): BrokerError {
  return new BrokerError("busy", { details: "the broker is stopping" });
}

function findRefusal(
  { headers }: FastifyRequest,
  { subprotocols, needsSubprotocol }: UpgradeRoute,
): string | undefined {
  const offer = headers["sec-websocket-protocol"];
  if (offer === undefined && !needsSubprotocol) return undefined;
  const offered = (offer ?? "").split(",").map((name) => name.trim());
  if (subprotocols.some((name) => offered.includes(name))) return undefined;
  return `the subprotocols here are ${subprotocols.join(", ")}`;
}
