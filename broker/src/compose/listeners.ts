import type { EmbeddedChain } from "@stele/chain";
import type { AsyncApiSettings } from "@stele/wire";
import { findConsoleFolder, findDocsFolder } from "../console-folder.ts";
import { certificateFilesOf } from "./certificates.ts";
import { createLogIns } from "./log-ins.ts";
import { createMqtt } from "./mqtt.ts";
import { createStomp } from "./stomp.ts";
import type { ConfiguredPlace, ListenerAddress, PlacedListener } from "./listen.ts";
import { asksClients, isSecured, tlsServed } from "../config/connection-conflicts.ts";
import { hostNamesOf } from "../config/derived.ts";
import { type ConnectionProtocol, connectionProtocols, portOf, serves } from "../config/connection-ports.ts";
import { adminPortOf, servesOperators } from "../config/admin-port.ts";
import type { Config } from "../config/settings.ts";
import type { Broker } from "../engine/broker.ts";
import type { Operator } from "../engine/operate/operator.ts";
import { operatorsListener } from "../gateway/admin/operators-path.ts";
import { type ConsoleFiles, readConsoleFiles } from "../gateway/console/console-files.ts";
import { createHttpServer, type HttpServerOptions } from "../gateway/http-server.ts";
import { MemoryBudget } from "../gateway/in-flight/memory-budget.ts";
import type { LogIn } from "../gateway/console/log-in/log-in.ts";
import type { Listener } from "../gateway/shared/connection/listener.ts";
import { ConnectionMemory } from "../gateway/shared/connection/memory.ts";
import type { UpgradeRoute } from "../gateway/shared/connection/upgrade.ts";
import type { SocketListener } from "../gateway/shared/connection/socket-listener.ts";
import type { Logger } from "../lib/logger.ts";
import type { Randomness } from "../ports/randomness.ts";
import type { MetricsRegistry } from "../telemetry/metrics.ts";
import { version } from "../version.ts";

interface ListenerOptions {
  readonly broker: Broker;
  readonly operator: Operator;
  readonly chain: EmbeddedChain | undefined;
  readonly metrics: MetricsRegistry;
  readonly logger: Logger;
  readonly randomness: Randomness;
  /** The started listeners, for the health page. */
  readonly listeners: () => readonly ListenerAddress[];
  /** How long requests in progress may take when the broker stops. */
  readonly closeDeadlineMs: number;
  readonly endOrders: () => void;
}

interface HttpOptions extends ListenerOptions {
  readonly budget: MemoryBudget;
  readonly memory: ConnectionMemory;
  readonly console: ConsoleFiles | undefined;
  readonly docs: ConsoleFiles | undefined;
  readonly logIns: readonly LogIn[] | undefined;
  readonly findWarnings: HttpServerOptions["findWarnings"];
  readonly routes: readonly UpgradeRoute[];
}

/** Every listener that the settings ask for, with its place; the first one serves HTTP. @throws Error if a certificate or a client's secret cannot be read. */
export function createListeners(config: Config, options: ListenerOptions): readonly PlacedListener[] {
  const budget = new MemoryBudget({ bytesMax: config.memoryInFlightBytesMax, metrics: options.metrics });
  const shared = { memory: new ConnectionMemory(budget) };
  const create = {
    mqtt: () => createMqtt(config, { ...options, ...shared }),
    stomp: () => createStomp(config, { ...options, ...shared }),
  } as const;
  const served = connectionProtocols.filter((protocol) => serves(config, protocol));
  const servers = served.map((protocol) => ({ protocol, server: create[protocol]() }));
  const routes = servers.map(({ server }) => server.route);
  const operators = adminPlaceOf(config);
  const logIns = createLogIns(config, options.logger);
  const pages = { console: findConsole(config, options.logger), docs: findDocs(config), logIns };
  const findWarnings = () => findWarningsOf(listeners, logIns);
  const http = { ...options, ...shared, budget, routes, ...pages, findWarnings };
  const listeners: readonly PlacedListener[] = [
    { listener: createHttp(config, http, { upgrades: routes, ...audienceOf(config) }), place: httpPlaceOf(config) },
    ...(operators === undefined
      ? []
      : [{ listener: createHttp(config, http, { audience: "operators" }), place: operators }]),
    ...servers.flatMap(({ protocol, server }) => listenersOf(config, protocol, server)),
  ];
  return listeners;
}

/** The warnings of login providers and of certificates. Skips the operators' listener: it has the clients' certificate, and renews it only if it listens. */
function findWarningsOf(
  listeners: readonly PlacedListener[],
  logIns: readonly LogIn[] = [],
): readonly (string | undefined)[] {
  const asked = listeners.filter(({ listener }) => listener.name !== operatorsListener);
  return [
    ...logIns.map(({ provider }) => provider.findWarning()),
    ...asked.map(({ listener }) => listener.findWarning?.()),
  ];
}

/** The listeners of a protocol over TCP and TLS, as far as the settings turn them on. */
function listenersOf(config: Config, protocol: ConnectionProtocol, server: SocketListener): readonly PlacedListener[] {
  const [tcp, tls] = [tcpPlaceOf(config, protocol), tlsPlaceOf(config, protocol)];
  return [
    ...(tcp === undefined ? [] : [{ listener: server, place: tcp }]),
    ...(tls === undefined
      ? []
      : [{ listener: server.createTlsListener(certificateFilesOf(config, protocol)), place: tls }]),
  ];
}

/** All places where the broker listens by these settings. */
export function placesOf(config: Config): readonly ConfiguredPlace[] {
  const others = connectionProtocols.flatMap((protocol) => [
    tcpPlaceOf(config, protocol),
    tlsPlaceOf(config, protocol),
  ]);
  return [httpPlaceOf(config), ...[adminPlaceOf(config), ...others].filter((place) => place !== undefined)];
}

/** Where the operators' own listener listens; undefined if they have none. */
function adminPlaceOf(config: Config): ConfiguredPlace | undefined {
  const found = adminPortOf(config);
  if (found === undefined) return undefined;
  const { host, port, isConfigured } = found;
  return { host, port, hostSetting: "adminHost", portSetting: "adminPort", isOptional: !isConfigured };
}

function audienceOf(config: Config): Pick<HttpServerOptions, "audience"> {
  return servesOperators(config) ? {} : { audience: "clients" };
}

function httpPlaceOf({ host, port }: Config): ConfiguredPlace {
  return { host, port, hostSetting: "host", portSetting: "port" };
}

/** Where the protocol listens without TLS; undefined if it is off there. */
function tcpPlaceOf(config: Config, protocol: ConnectionProtocol): ConfiguredPlace | undefined {
  const found = portOf(config, protocol);
  if (found === undefined) return undefined;
  const { port, isConfigured } = found;
  return { host: config.host, port, hostSetting: "host", portSetting: `${protocol}Port`, isOptional: !isConfigured };
}

/** Where the protocol listens over TLS; undefined if it is off there. */
function tlsPlaceOf(config: Config, protocol: ConnectionProtocol): ConfiguredPlace | undefined {
  const port = config[`${protocol}TlsPort`];
  return port === "off"
    ? undefined
    : { host: config.host, port, hostSetting: "host", portSetting: `${protocol}TlsPort` };
}

function createHttp(
  config: Config,
  options: HttpOptions,
  own: Pick<HttpServerOptions, "upgrades" | "audience">,
): Listener {
  const { broker, operator, chain, metrics, logger, closeDeadlineMs } = options;
  const server = createHttpServer({
    broker,
    operator,
    metrics,
    logger,
    ...own,
    certificate: isSecured(config, "http") ? certificateFilesOf(config, "http") : undefined,
    clientsAddress: () => hostOf(options.listeners().find(({ name }) => name === "HTTP")?.address),
    listeners: options.listeners,
    asyncApi: asyncApiOf(config),
    clientsRoutes: options.routes,
    console: options.console,
    docs: options.docs,
    consoleChainNodes: config.consoleChainNodes,
    logIns: options.logIns,
    findWarnings: options.findWarnings,
    budget: options.budget,
    chain: config.chainEndpoint === "on" ? chain?.reader : undefined,
    version,
    defaultGroup: config.defaultGroup,
    basePath: config.basePath,
    extensionPrefix: config.extensionPrefix,
    bodyBytesMax: config.requestBodyBytesMax,
    memoryInFlightBytesMax: config.memoryInFlightBytesMax,
    tail: own.audience === "operators" ? undefined : toTailOptions(config, options),
    advertisedAddress: config.advertisedAddress,
    allowedHosts: hostNamesOf(config),
    allowedOrigins: config.allowedOrigins,
    trustedProxies: config.trustedProxies,
    closeDeadlineMs,
    endOrders: options.endOrders,
  });
  metrics.watchHttpConnections(server.name, () => server.connections);
  return server;
}

function asyncApiOf(config: Config): AsyncApiSettings {
  return {
    hasKeys: config.access !== undefined,
    asksCertificates: tlsServed.filter((served) => asksClients(config, served)),
    mqttSessionExpirySecondsMax: config.mqttSessionExpirySecondsMax,
    mqttPayload: config.mqttPayload,
    hasMqttEventPlace: config.mqttEventPlace === "on",
  };
}

function findConsole(config: Config, logger: Logger): ConsoleFiles | undefined {
  if (config.console === "off") return undefined;
  const folder = findConsoleFolder();
  const files = folder === undefined ? undefined : readConsoleFiles(folder);
  if (files === undefined) logger.warn("console not served: its files are missing; npm run build makes them");
  return files;
}

/** The pages of the documentation. Does not warn if they are missing: only those who build them have them. */
function findDocs(config: Config): ConsoleFiles | undefined {
  const folder = config.console === "off" ? undefined : findDocsFolder();
  return folder === undefined ? undefined : readConsoleFiles(folder);
}

/** The options of tails. Used only for the listener that serves clients, because the metrics of tails can be registered only once. */
function toTailOptions(config: Config, { memory, metrics, randomness }: HttpOptions): HttpServerOptions["tail"] {
  return {
    tailsMax: config.tailsMax,
    cloudEventType: config.cloudEventsType,
    unread: memory.unread,
    metrics: metrics.tails,
    random: () => randomness.fraction(),
  };
}

function hostOf(url: string | undefined): string | undefined {
  return url && new URL(url).host;
}
