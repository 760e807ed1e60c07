import type { Server as HttpsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { TLSSocket } from "node:tls";
import { type AsyncApiSettings, toOpenApi, toOpenRpc } from "@stele/wire";
import { type FastifyInstance, fastify } from "fastify";
import type { Broker } from "../engine/broker.ts";
import type { Operator } from "../engine/operate/operator.ts";
import { toHostPort } from "../lib/host.ts";
import type { Logger } from "../lib/logger.ts";
import { once } from "../lib/once.ts";
import { type AdminOptions, type Audience, type MetricsPage, registerAdmin } from "./admin/admin-plugin.ts";
import { AsyncApiPage } from "./admin/async-api.ts";
import { isOperatorsPath, operatorsListener } from "./admin/operators-path.ts";
import { registerAdminApi } from "./admin/v1/admin-api.ts";
import { createCallerGuard } from "./callers/caller-guard.ts";
import { registerLogIns } from "./callers/http-log-ins.ts";
import { registerChain } from "./chain/chain-plugin.ts";
import type { ChainSource } from "./chain/chain-reader.ts";
import { createClientErrorHandler } from "./client-error.ts";
import type { ConsoleFiles } from "./console/console-files.ts";
import { registerConsole } from "./console/console-plugin.ts";
import { registerDocs } from "./console/docs-plugin.ts";
import type { LogIn } from "./console/log-in/log-in.ts";
import { createFallbacks } from "./fallbacks.ts";
import { registerInFlight } from "./in-flight/in-flight.ts";
import { type InFlightMetrics, MemoryBudget } from "./in-flight/memory-budget.ts";
import { registerJsonRpc } from "./jsonrpc/jsonrpc-plugin.ts";
import {
  closeDeadlineDefaultMs,
  closeHeadersTimeoutMs,
  closePollIntervalMs,
  connectionsMax,
  connectionsWaitingMax,
  pathParameterCharactersMax,
} from "./limits.ts";
import { createServer } from "./node-server.ts";
import { registerRest } from "./rest/rest-plugin.ts";
import { toBasePath } from "./shared/base-path.ts";
import { createBodyCollector } from "./shared/collect-body.ts";
import { isLinkToPage } from "./shared/console-path.ts";
import { hasTooManyHeaders } from "./shared/header-limit.ts";
import { isAnswering } from "./shared/is-answering.ts";
import type { Listener, Place } from "./shared/connection/listener.ts";
import type { CertificateFiles } from "./shared/connection/tls/certificate.ts";
import { endAtExpiry } from "./shared/connection/tls/end-at-expiry.ts";
import { RenewedCertificate, type TlsServerOptions } from "./shared/connection/tls/renewed-certificate.ts";
import type { UpgradeRoute } from "./shared/connection/upgrade.ts";
import { OperationRunner } from "./shared/run-operation.ts";
import { registerTail } from "./tail/tail-plugin.ts";
import { Tails, type TailsOptions } from "./tail/tails.ts";
import { WebSockets } from "./upgrade/web-sockets.ts";

export interface HttpServerOptions {
  readonly broker: Broker;
  /** Serves the admin API, unless this server serves clients alone. Tests of other interfaces leave it out. */
  readonly operator?: Operator | undefined;
  readonly logger: Logger;
  /** Prefix of every path; empty for none. */
  readonly basePath: string;
  readonly extensionPrefix: string;
  /** Longest request body, in bytes. A longer publish over REST is answered 100201, anything else 200001. */
  readonly bodyBytesMax: number;
  readonly metrics: MetricsPage & InFlightMetrics;
  /**
   * Memory for long requests and for long answers until their clients have read them. Past it, the server ends the slowest connections or refuses
   * long requests.
   */
  readonly memoryInFlightBytesMax: number;
  /** The budget of that memory, if other listeners share it. If left out, the server creates its own. */
  readonly budget?: MemoryBudget | undefined;
  readonly version: string;
  /** The group that a call without groupId means. */
  readonly defaultGroup: string;
  /** The chain that the server offers read-only at `/chain`; none if left out. */
  readonly chain?: ChainSource | undefined;
  /** host:port of this node in the subscription listing; if left out, the address of the clients' listener. */
  readonly advertisedAddress?: string | undefined;
  /** Names that a Host header may have besides IP addresses and localhost; `*.name` allows all names below it, `*` any name. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Origins whose web pages may call everything but the operators' paths; `*` for any. */
  readonly allowedOrigins?: readonly string[] | undefined;
  /** Addresses and networks of proxies whose `X-Forwarded-For` the server trusts; none if left out. */
  readonly trustedProxies?: readonly string[] | undefined;
  /** host:port of the clients' listener, if this server is not that listener. */
  readonly clientsAddress?: (() => string | undefined) | undefined;
  /** Whom the server serves; everybody if left out. Clients do not get `/admin`, `/metrics` and `/chain`; operators do not get REST, JSON-RPC and tails. */
  readonly audience?: Audience | undefined;
  /** How long requests in progress may take when the server closes. */
  readonly closeDeadlineMs?: number | undefined;
  /** Called when a closing server stops accepting. Ends the admin orders that wait for receivers, so that their callers get answers in time. */
  readonly endOrders?: (() => void) | undefined;
  /** Protocols over WebSocket; none if left out. */
  readonly upgrades?: readonly UpgradeRoute[] | undefined;
  /** Serves over TLS if given. */
  readonly certificate?: CertificateFiles | undefined;
  /** Serves tails if given. */
  readonly tail?: TailsOptions | undefined;
  /** Serves the console if given. */
  readonly console?: ConsoleFiles | undefined;
  /** Serves the documentation if given. */
  readonly docs?: ConsoleFiles | undefined;
  /** Nodes of the chain that the console may ask for block hashes; none if left out. */
  readonly consoleChainNodes?: readonly string[] | undefined;
  /** Ways to log in to the console besides keys; none if left out. */
  readonly logIns?: readonly LogIn[] | undefined;
  /** See {@link AdminOptions.findWarnings}. */
  readonly findWarnings?: AdminOptions["findWarnings"];
  /** The active listeners, for the health page and the AsyncAPI document. */
  readonly listeners?: AdminOptions["listeners"];
  /** Settings that the AsyncAPI document shows. */
  readonly asyncApi?: AsyncApiSettings | undefined;
  /** Protocols over WebSocket that the clients' listener serves; those of `upgrades` if left out. */
  readonly clientsRoutes?: readonly UpgradeRoute[] | undefined;
}

/**
 * Serves REST, JSON-RPC, tails, admin, the chain, the console, the documentation and protocols over WebSocket on one port. `listen` returns the base
 * URL, base path included. A draining server is not ready; it stops accepting after the delay, then requests in progress have until the
 * deadline.
 */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  return new HttpServer(options);
}

export class HttpServer implements Listener {
  readonly name: string;
  readonly #app: FastifyInstance;
  readonly #webSockets: WebSockets;
  readonly #tails: Tails | undefined;
  readonly #basePath: string;
  readonly #logger: Logger;
  readonly #closeDeadlineMs: number;
  readonly #endOrders: () => void;
  readonly #certificate: RenewedCertificate | undefined;
  readonly #connections = new Set<Socket>();
  /** TLS sockets of connections after the handshake. Their `bytesRead` counts only requests, not the handshake. */
  readonly #secured = new Set<Socket>();
  #isClosing = false;

  constructor(options: HttpServerOptions) {
    this.name = options.audience === "operators" ? operatorsListener : "HTTP";
    this.#basePath = toBasePath(options.basePath);
    this.#logger = options.logger;
    this.#closeDeadlineMs = options.closeDeadlineMs ?? closeDeadlineDefaultMs;
    this.#endOrders = options.endOrders ?? (() => {});
    const { certificate: files, logger } = options;
    this.#certificate = files && new RenewedCertificate({ files, protocol: "HTTP", logger });
    const resolved = { ...options, basePath: this.#basePath, tls: this.#certificate?.serverOptions };
    const { app, webSockets, tails } = createApp(resolved, () => this.#isClosing);
    this.#app = app;
    this.#tails = tails;
    this.#webSockets = webSockets;
    app.server.on("connection", (socket: Socket) => void collect(this.#connections, socket));
    app.server.on("secureConnection", (socket: TLSSocket) => {
      if (collect(this.#secured, socket)) endAtExpiry(socket);
    });
  }

  /** Open connections, WebSockets and tails among them. */
  get connections(): number {
    return this.#connections.size;
  }

  async listen(place: Place): Promise<string> {
    const address = await this.#app.listen({ ...place, backlog: connectionsWaitingMax });
    // Without this listener, an error of accept(), such as EMFILE, would end the process.
    this.#app.server.on("error", (error) => this.#logger.error("connection not accepted", { error }));
    if (this.#certificate === undefined) return `${address}${this.#basePath}`;
    this.#certificate.watchFor(this.#tlsServer);
    return `${address.replace(/^http:/, "https:")}${this.#basePath}`;
  }

  findWarning(): string | undefined {
    return this.#certificate?.findWarning();
  }

  /** Reloads the certificate, if there is one. */
  reload(): void {
    this.#certificate?.reload(this.#tlsServer);
  }

  /** Only for a server over TLS. */
  get #tlsServer(): HttpsServer {
    return this.#app.server as HttpsServer; // `createApp` made it one.
  }

  async drain(delayMs = 0): Promise<void> {
    const isFirst = !this.#isClosing;
    this.#isClosing = true;
    this.#certificate?.stop();
    if (isFirst && delayMs > 0) await this.#serveDuringDelay(delayMs);
    const ended = Promise.all([this.#webSockets.drain(), this.#tails?.endAll()]);
    this.#endOrders();
    const headersUntil = performance.now() + closeHeadersTimeoutMs;
    // Otherwise a connection whose last request ends after `close` began would be kept alive.
    const poll = setInterval(() => {
      this.#app.server.closeIdleConnections();
      this.#closeUnused();
      if (performance.now() >= headersUntil) this.#closeUnasked();
    }, closePollIntervalMs);
    const deadline = new AbortController();
    try {
      const drained = Promise.all([ended, this.#app.close()]);
      await Promise.race([drained, pause(this.#closeDeadlineMs, undefined, { signal: deadline.signal })]);
    } finally {
      deadline.abort();
      clearInterval(poll);
    }
  }

  async close(): Promise<void> {
    this.#webSockets.close();
    // `closeAllConnections` of Node leaves out those in the TLS handshake.
    for (const socket of this.#connections) socket.destroy();
    await this.#app.close();
  }

  /** Node does not count a connection as idle before its first request. Browsers and load balancers open some in advance. */
  #closeUnused(): void {
    for (const sockets of [this.#connections, this.#secured]) {
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
    }
  }

  /** Closes connections whose handshake or next headers are incomplete. Node stops timing out headers when a server closes. */
  #closeUnasked(): void {
    const hasRequest = (socket: Socket): boolean => isAnswering(socket) || this.#webSockets.has(socket);
    const asked = this.#certificate === undefined ? this.#connections : this.#secured;
    const kept = new Set([...asked].filter(hasRequest).map(peerOf));
    for (const socket of this.#connections) if (!kept.has(peerOf(socket))) socket.destroy();
  }

  /** Serves during the delay. Each answer ends its connection, so that clients move to another node. */
  async #serveDuringDelay(delayMs: number): Promise<void> {
    const { server } = this.#app;
    if (!server.listening) return;
    server.maxRequestsPerSocket = 1;
    await pause(delayMs);
  }
}

/** The client of a connection; its TLS socket has the same one. */
function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/** Keeps a socket in the set until it closes. Returns false for a known one: `serveAsPlain` gives a connection back to the server. */
function collect(sockets: Set<Socket>, socket: Socket): boolean {
  if (sockets.has(socket)) return false;
  sockets.add(socket);
  socket.once("close", () => sockets.delete(socket));
  return true;
}

interface App {
  readonly app: FastifyInstance;
  readonly webSockets: WebSockets;
  readonly tails: Tails | undefined;
}

interface AppOptions extends HttpServerOptions {
  readonly tls: TlsServerOptions | undefined;
}

function refuseSchema(): never {
  throw new Error("the routes of the broker have no schemas");
}

/** Options of Fastify that every server has. */
const fastifyDefaults = {
  logger: false,
  // While closing, the server still serves requests on open connections.
  return503OnClosing: false,
  // Handlers read the query from the request target themselves.
  routerOptions: { querystringParser: () => ({}), maxParamLength: pathParameterCharactersMax },
  // Without these functions, Fastify loads its compilers of schemas, which take a twentieth of the time of a start.
  schemaController: { compilersFactory: { buildValidator: refuseSchema, buildSerializer: refuseSchema } },
} as const;

function createApp(options: AppOptions, isClosing: () => boolean): App {
  const { broker, operator, logger, basePath, version, audience } = options;
  const chain = audience === "clients" ? undefined : options.chain;
  const fallbacks = createFallbacks(options);
  const answersCaller = createCallerGuard({
    allowedHosts: options.allowedHosts ?? [],
    allowedOrigins: options.allowedOrigins ?? [],
    isForOperators: (request) => audience === "operators" || isOperatorsPath(request, basePath),
    isOpenLink: (request) => isLinkToPage(request, basePath),
    logger,
  });
  const app = fastify({
    ...fastifyDefaults,
    serverFactory: (handler) => createServer(options.tls, handler, broker),
    clientErrorHandler: createClientErrorHandler(basePath),
    // Fastify runs no hook if it cannot read the target, so the guard is called here.
    frameworkErrors: (error, request, reply) => {
      if (!answersCaller(request, reply)) fallbacks.answerError(error, request, reply);
    },
  });
  app.server.maxConnections = connectionsMax;
  const { memoryInFlightBytesMax: bytesMax, metrics } = options;
  const budget = options.budget ?? new MemoryBudget({ bytesMax, metrics });
  const findHolding = registerInFlight(app, budget);
  app.addHook("onRequest", (request, reply, done) => {
    // A GET may publish. A shared cache that stores answers by default would answer the next one, and nothing would be published.
    reply.header("cache-control", "no-store");
    if (hasTooManyHeaders(request.raw)) fallbacks.answerTooManyHeaders(request, reply);
    else if (!answersCaller(request, reply)) done();
  });
  registerLogIns(app, options);
  app.removeAllContentTypeParsers();
  // Fastify finds named types in a cache; for the catch-all it parses the header of each request.
  app.addContentTypeParser(
    ["application/x-www-form-urlencoded", "application/json", "*"],
    createBodyCollector({ bytesMax: options.bodyBytesMax, findHolding }),
  );
  app.setNotFoundHandler(fallbacks.answerNotFound);
  app.setErrorHandler(fallbacks.answerError);
  // Building a document takes milliseconds, so each is built at its first request.
  const document = { version, basePath, extensionPrefix: options.extensionPrefix };
  const runner = new OperationRunner();
  const tails = options.tail && new Tails({ ...options.tail, extensionPrefix: options.extensionPrefix, broker });
  const nodeAddress = () => options.advertisedAddress ?? options.clientsAddress?.() ?? addressOf(app.server.address());
  app.register(
    (scope, _options, done) => {
      if (audience !== "operators") {
        registerRest(scope, { ...options, runner });
        registerJsonRpc(scope, { ...options, runner, openRpc: once(() => toOpenRpc(document)) }, findHolding);
        if (tails !== undefined) registerTail(scope, { tails, logger });
      }
      registerPages(scope, options);
      if (chain !== undefined) registerChain(scope, { broker, source: chain, logger }, findHolding);
      if (operator !== undefined && audience !== "clients") registerAdminApi(scope, { ...options, operator, runner });
      registerAdmin(scope, {
        ...options,
        runner,
        hasChain: chain !== undefined,
        hasConsole: options.console !== undefined,
        hasDocs: options.docs !== undefined,
        openApi: once(() => toOpenApi(document)),
        asyncApi: createAsyncApiPage(options),
        isClosing,
        nodeAddress,
        findHolding,
      });
      done();
    },
    { prefix: basePath },
  );
  const webSockets = new WebSockets(app, { basePath, logger, budget, routes: options.upgrades ?? [] });
  return { app, webSockets, tails };
}

function registerPages(scope: FastifyInstance, { console: files, docs, ...options }: AppOptions): void {
  const { consoleChainNodes: chainNodes } = options;
  if (files !== undefined) registerConsole(scope, { ...options, files, hasDocs: docs !== undefined, chainNodes });
  if (docs !== undefined) registerDocs(scope, { ...options, files: docs });
}

function createAsyncApiPage(options: AppOptions): AsyncApiPage {
  const { asyncApi: settings, clientsRoutes, upgrades, tls, audience } = options;
  const routes = clientsRoutes ?? upgrades ?? [];
  const isForOperators = audience === "operators";
  return new AsyncApiPage({ ...options, settings, routes, isSecure: tls !== undefined, isForOperators });
}

function addressOf(address: AddressInfo | string | null): string {
  if (address === null || typeof address === "string") return "";
  return toHostPort(address.address, address.port);
}
