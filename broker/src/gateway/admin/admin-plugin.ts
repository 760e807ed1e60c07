import { adminPath } from "@stele/wire";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Caller } from "../../engine/access/caller.ts";
import type { Broker, GroupHealth } from "../../engine/broker.ts";
import { joinTexts } from "../../lib/join-texts.ts";
import type { Logger } from "../../lib/logger.ts";
import { ConnectionCallers } from "../callers/connection-callers.ts";
import { AnswerStream } from "../in-flight/answer-stream.ts";
import type { FindHolding } from "../in-flight/in-flight.ts";
import { consolePath, docsPath, wantsPage } from "../shared/console-path.ts";
import { findQuery } from "../shared/find-query.ts";
import type { OperationRunner } from "../shared/run-operation.ts";
import { statusOf } from "../shared/status-of.ts";
import { jsonType, sendFailure } from "../shared/send-failure.ts";
import { addVary } from "../shared/vary.ts";
import type { AsyncApiPage } from "./async-api.ts";
import { toSkippedListing } from "./listing.ts";
import { SharedListing } from "./shared-listing.ts";

/** Renders all metrics in the format of Prometheus. */
export interface MetricsPage {
  readonly contentType: string;
  render(): Promise<string>;
}

export interface AdminOptions {
  readonly broker: Broker;
  readonly logger: Logger;
  readonly metrics: MetricsPage;
  readonly openApi: () => unknown;
  readonly asyncApi: AsyncApiPage;
  readonly version: string;
  readonly basePath: string;
  /** The group that a call without groupId means. */
  readonly defaultGroup: string;
  /** Whether the chain is served too. */
  readonly hasChain: boolean;
  /** Whether the console is served too. */
  readonly hasConsole: boolean;
  /** Whether the documentation is served too. */
  readonly hasDocs: boolean;
  /** Whether the server is closing, so that no new work should be sent to it. */
  readonly isClosing: () => boolean;
  /** host:port of this node in the subscription listing. */
  readonly nodeAddress: () => string;
  readonly findHolding: FindHolding;
  readonly runner: OperationRunner;
  /** Whom the listener serves; everybody if left out. */
  readonly audience?: Audience | undefined;
  /** The active listeners; the health page omits them if undefined. */
  readonly listeners?: (() => readonly ListenerAddress[]) | undefined;
  /** Warnings of parts that the engine does not know, such as login providers and certificates. Readiness adds them to those of the groups. */
  readonly findWarnings?: (() => readonly (string | undefined)[]) | undefined;
}

/** Whom a listener serves if it does not serve everybody. */
export type Audience = "clients" | "operators";

interface ListenerAddress {
  readonly name: string;
  readonly address: string;
}

type CallerOf = (request: FastifyRequest) => Caller;

/** The pages about the broker: subscriptions, skipped entries and metrics for operators; health, rights, API documents and an index for all. */
export function registerAdmin(app: FastifyInstance, options: AdminOptions): void {
  const callers = new ConnectionCallers("admin");
  const callerOf: CallerOf = (request) => callers.ofRequest(request);
  if (options.audience !== "clients") registerOperators(app, options, callerOf);
  app.get("/health/live", (_request, reply) => sendJson(reply, { status: "live" }));
  app.get("/health/ready", (request, reply) =>
    sendReadiness(reply, {
      ...options,
      caller: callerOf(request),
      groupId: groupOf(request),
    }),
  );
  app.get("/access", (request, reply) => sendRights(reply, { ...options, caller: callerOf(request) }));
  app.get("/openapi.json", (_request, reply) => sendJson(reply, options.openApi()));
  app.get("/asyncapi.json", (request, reply) => sendJson(reply, options.asyncApi.render(request.headers.host)));
  // Under a base path Fastify serves the index with and without the last slash.
  app.get("/", (request, reply) => sendIndex(request, reply, options));
}

function registerOperators(app: FastifyInstance, options: AdminOptions, callerOf: CallerOf): void {
  const listing = new SharedListing(options);
  app.route({
    method: ["GET", "POST"],
    url: "/admin/listSubscription",
    exposeHeadRoute: false,
    handler: (request, reply) => sendListing(reply, () => listing.read(callerOf(request)), options),
  });
  app.get("/admin/skippedEntries", (request, reply) =>
    sendSkippedEntries(reply, queryOf(request), { ...options, caller: callerOf(request) }),
  );
  app.get("/metrics", async (request, reply) => {
    options.broker.authorize(callerOf(request), "administer");
    return reply.header("content-type", options.metrics.contentType).send(await options.metrics.render());
  });
}

interface Called {
  readonly caller: Caller;
}

async function sendListing(
  reply: FastifyReply,
  read: () => Promise<readonly Buffer[]>,
  { findHolding, logger }: AdminOptions,
): Promise<FastifyReply> {
  try {
    const body = new AnswerStream(await read(), findHolding(reply.request));
    body.holding.take(body.bytes);
    return reply.header("content-type", jsonType).send(body);
  } catch (error) {
    return sendFailure(reply, error, { logger, operation: "listSubscription" });
  }
}

async function sendSkippedEntries(
  reply: FastifyReply,
  query: URLSearchParams,
  { broker, logger, caller, runner }: AdminOptions & Called,
): Promise<FastifyReply> {
  try {
    const call = { groupId: query.get("groupId") ?? undefined, limit: query.get("limit") ?? undefined };
    const list = async () => toSkippedListing(await broker.listSkippedEntries(caller, call));
    return sendJson(reply, await runner.runInTurn("read", { caller }, list));
  } catch (error) {
    return sendFailure(reply, error, { logger, operation: "skippedEntries" });
  }
}

/** The query of a request. The server itself parses no queries: each interface parses them in its own way. */
function queryOf({ url }: FastifyRequest): URLSearchParams {
  return new URLSearchParams(findQuery(url));
}

/** The group that the query names; undefined for none. A blank name counts as none, as in all calls. */
function groupOf(request: FastifyRequest): string | undefined {
  const text = queryOf(request).get("groupId") ?? "";
  return text.trim() === "" ? undefined : text;
}

interface ReadinessOptions extends AdminOptions, Called {
  /** The one group that is asked about; undefined for all of them. */
  readonly groupId: string | undefined;
}

/**
 * Answers 503 while the server closes, or while no group can serve, for example on a node that lost its membership. One group that is down does not make the
 * node unready: a load balancer would then send it no calls of the other groups either. The query may ask about one group.
 */
function sendReadiness(reply: FastifyReply, { groupId, caller, ...options }: ReadinessOptions): FastifyReply {
  const { broker, logger } = options;
  try {
    const groups = broker.health(caller, groupId);
    const status = options.isClosing() ? "closing" : readinessOf(groups);
    const isReady = status === "ready" || status === "partly ready";
    reply.status(isReady ? 200 : 503);
    if (!mayInspect(broker, caller)) return sendJson(reply, { status });
    const node = broker.node(caller);
    return sendJson(reply, { status, node, listeners: options.listeners?.(), groups: withWarnings(groups, options) });
  } catch (error) {
    return sendFailure(reply.status(statusOf(error)), error, { logger, operation: "ready" });
  }
}

function withWarnings(
  groups: readonly GroupHealth[],
  { findWarnings }: Pick<AdminOptions, "findWarnings">,
): readonly GroupHealth[] {
  const own = findWarnings?.() ?? [];
  return groups.map((group) => ({ ...group, warning: joinTexts([group.warning, ...own]) }));
}

/** Latest time that a date can hold, in milliseconds (ECMAScript, section 21.4.1.1). A token may end later. */
const dateMax = 8.64e15;

/** Answers what the caller may do, and nothing about other callers. */
function sendRights(reply: FastifyReply, { broker, caller, logger, audience }: AdminOptions & Called): FastifyReply {
  try {
    const { principal, expiresAt, actions } = broker.rightsOf(caller);
    const serves = audience === undefined ? (["clients", "operators"] as const) : [audience];
    const until =
      expiresAt === undefined || expiresAt > dateMax ? {} : { expiresAt: new Date(expiresAt).toISOString() };
    reply.header("cache-control", "no-store");
    return sendJson(reply, { ...(principal !== undefined && { principal }), ...until, actions, serves });
  } catch (error) {
    return sendFailure(reply.status(statusOf(error)), error, { logger, operation: "access" });
  }
}

function mayInspect(broker: Broker, caller: Caller): boolean {
  try {
    broker.authorize(caller, "inspect");
    return true;
  } catch {
    return false;
  }
}

function readinessOf(groups: readonly GroupHealth[]): "ready" | "partly ready" | "not ready" {
  if (groups.every(({ ready }) => ready)) return "ready";
  return groups.some(({ ready }) => ready) ? "partly ready" : "not ready";
}

/** Sends a browser to the console if there is one; other clients get the addresses. */
function sendIndex(request: FastifyRequest, reply: FastifyReply, options: AdminOptions): FastifyReply {
  if (!options.hasConsole) return sendJson(reply, toIndex(options));
  addVary(reply, "accept");
  if (!wantsPage(request.headers.accept)) return sendJson(reply, toIndex(options));
  return reply.header("cache-control", "no-store").redirect(`${options.basePath}${consolePath}/`);
}

function toIndex({ basePath, version, defaultGroup, hasChain, hasConsole, hasDocs, audience }: AdminOptions) {
  const forClients = { rest: `${basePath}/rest/`, jsonrpc: `${basePath}/jsonrpc`, tail: `${basePath}/tail` };
  const forOperators = {
    subscriptions: `${basePath}/admin/listSubscription`,
    skippedEntries: `${basePath}/admin/skippedEntries`,
    metrics: `${basePath}/metrics`,
    admin: `${basePath}${adminPath}/openapi.json`,
  };
  return {
    name: "stele",
    version,
    defaultGroup,
    ...(audience === "operators" ? {} : forClients),
    ...(hasChain ? { chain: `${basePath}/chain` } : {}),
    ...(hasConsole ? { console: `${basePath}${consolePath}/` } : {}),
    ...(hasDocs ? { docs: `${basePath}${docsPath}/` } : {}),
    ...(audience === "clients" ? {} : forOperators),
    openapi: `${basePath}/openapi.json`,
    asyncapi: `${basePath}/asyncapi.json`,
    live: `${basePath}/health/live`,
    ready: `${basePath}/health/ready`,
  };
}

function sendJson(reply: FastifyReply, value: unknown): FastifyReply {
  return reply.header("content-type", jsonType).send(JSON.stringify(value));
}
