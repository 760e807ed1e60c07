import {
  type AdminOperationName,
  type AdminQuery,
  BrokerError,
  type OrderBody,
  type OrderName,
  orderNames,
  pageLimitDefault,
  pageLimitMax,
  parseDateTime,
  quote,
  sessionKinds,
  webhookKinds,
} from "@stele/wire";
import type { Caller } from "../../../engine/access/caller.ts";
import type {
  DeliveryChange,
  EventBound,
  Page,
  PageCall,
  PlaceOrder,
  SearchCall,
  SessionsCall,
  SubscriptionOrder,
} from "../../../engine/operate/calls.ts";
import type { Operator } from "../../../engine/operate/operator.ts";
import { toProof } from "../../../engine/query/to-proof.ts";
import { parameterError } from "../../shared/failure.ts";
import {
  toBlock,
  toDeadLetter,
  toEvent,
  toFigures,
  toGroup,
  toNodePage,
  toOrderResult,
  toRole,
  toSession,
  toSkipped,
  toSubscription,
  toSubscriptionDetails,
  toTopic,
  toTopicDetails,
} from "./bodies.ts";

export interface AdminBrokers {
  readonly operator: Operator;
  /** The OpenAPI document. */
  readonly document: () => unknown;
}

/** A call whose values were checked by the schemas of its operation. */
export interface AdminCall extends AdminBrokers {
  readonly caller: Caller;
  readonly params: Readonly<Record<string, string>>;
  readonly query: AdminQuery;
  readonly body: OrderBody;
}

type AdminHandler = (call: AdminCall) => Promise<unknown>;

/** The handler of each operation turns its values into a call and its result into the documented form. */
export const adminHandlers: { readonly [Name in AdminOperationName]: AdminHandler } = {
  ...toOrderHandlers(),
  listSubscriptions: async ({ operator, caller, query }) =>
    toPage(await operator.searchSubscriptions(caller, toSearch(query), pageOf(query)), toSubscription),
  getSubscription: async ({ operator, caller, params }) =>
    toSubscriptionDetails(await operator.getSubscription(caller, nameOf(params, "id"))),
  listDeadLetters: async ({ operator, caller, params, query }) =>
    toPage(await operator.listDeadLetters(caller, nameOf(params, "id"), pageOf(query)), toDeadLetter),
  listSessions: async ({ operator, caller, query }) =>
    toPage(await operator.searchSessions(caller, toSessionSearch(query), pageOf(query)), toSession),
  getSession: async ({ operator, caller, params }) =>
    toSession(await operator.getSession(caller, nameOf(params, "id"))),
  listTopics: async ({ operator, caller, query }) => {
    const { groupId, prefix, filter } = query;
    return toPage(await operator.searchTopics(caller, { groupId, prefix, filter }, pageOf(query)), toTopic);
  },
  getTopic: async ({ operator, caller, params, query }) => {
    return toTopicDetails(await operator.getTopic(caller, nameOf(params, "topic"), query.groupId));
  },
  listEvents: async ({ operator, caller, params, query }) => {
    const { after, limit } = pageOf(query);
    const before = after === undefined ? toBound(query, "before") : { sequence: toSequence(after) };
    const from = toBound(query, "from");
    const call = { topic: nameOf(params, "topic"), groupId: query.groupId, from, before, limit };
    return toPage(await operator.listEvents(caller, call), toEvent);
  },
  getEvent: async ({ operator, caller, params, query: { groupId, proof } }) => {
    const call = { eventId: nameOf(params, "eventId"), groupId };
    if (proof !== true) return toEvent(await operator.getEvent(caller, call));
    const found = await operator.getProof(caller, call);
    return { ...toEvent(found.event), proof: toProof(found) };
  },
  listGroups: async ({ operator, caller, query }) =>
    toPage(await operator.listGroups(caller, wholePageOf(query)), toGroup),
  listSkippedEntries: async ({ operator, caller, params, query }) =>
    toPage(await operator.listSkippedEntries(caller, nameOf(params, "groupId"), pageOf(query)), toSkipped),
  listBlocks: async ({ operator, caller, query }) =>
    toPage(await operator.listBlocks(caller, query.groupId, pageOf(query)), toBlock),
  listNodes: async ({ operator, caller, query }) => toNodePage(await operator.listNodes(caller, wholePageOf(query))),
  listRoles: async ({ operator, caller, query }) => toPage(await operator.listRoles(caller, pageOf(query)), toRole),
  getRole: async ({ operator, caller, params }) => toRole(await operator.getRole(caller, nameOf(params, "name"))),
  setRole: async ({ operator, caller, params, body: { rules = [] } }) =>
    toRole(await operator.setRole(caller, nameOf(params, "name"), rules)),
  deleteRole: async ({ operator, caller, params }) => {
    const name = nameOf(params, "name");
    await operator.deleteRole(caller, name);
    return { name };
  },
  getOpenApi: async ({ document }) => document(),
  listFigures: async ({ operator, caller }) => toFigures(operator.listFigures(caller)),
};

type OrderOperation = `${OrderName}Subscription` | `${OrderName}Subscriptions`;

function toOrderHandlers(): { readonly [Name in OrderOperation]: AdminHandler } {
  const handlers = orderNames.flatMap((name) => [
    [`${name}Subscription`, (call: AdminCall) => orderOne(name, call)],
    [`${name}Subscriptions`, (call: AdminCall) => orderAll(name, call)],
  ]);
  return Object.fromEntries(handlers) as { readonly [Name in OrderOperation]: AdminHandler }; // One of each name.
}

async function orderOne(name: OrderName, { operator, caller, params, query, body }: AdminCall): Promise<unknown> {
  const isDryRun = query.dryRun === true;
  const call = { order: toOrder(name, body), isDryRun };
  return toOrderResult(await operator.orderSubscription(caller, nameOf(params, "id"), call), isDryRun);
}

async function orderAll(name: OrderName, { operator, caller, query, body }: AdminCall): Promise<unknown> {
  const isDryRun = query.dryRun === true;
  const search = toSearch(query);
  // An unset variable of a script gives a blank prefix, which matches all topics. With another condition, the order would then apply to too many subscriptions.
  if (search.prefix === "") throw parameterError('"prefix" is blank: name the beginning of topics, or leave it out');
  if (query.all !== true && Object.values(search).every(leavesNothingOut)) {
    throw parameterError('name what to search for, or set "all=true"');
  }
  const rest = { ...pageOf(query), order: toOrder(name, body), isDryRun };
  const page = await operator.orderSubscriptions(caller, search, rest);
  return toPage(page, (result) => toOrderResult(result, isDryRun));
}

/** A blank text or a minimum of 0 matches every subscription; often it is an unset variable of a script. */
function leavesNothingOut(value: unknown): boolean {
  return value === undefined || value === "" || value === 0;
}

function toOrder(name: OrderName, { to, from, eventId, ...change }: OrderBody): SubscriptionOrder {
  if (name === "change") return { kind: name, change: toChange(change) };
  if (name === "redeliver" || name === "discard") return { kind: name, eventId };
  if (name === "skip") return { kind: name, to: to === undefined ? undefined : toPlace(to) };
  if (name !== "replay") return { kind: name };
  if (from === undefined) throw parameterError('"from" is missing');
  return { kind: name, from: toPlace(from) };
}

function toChange({ rotationSeconds, format, batch, ...change }: Omit<OrderBody, "to" | "from">): DeliveryChange {
  const rotationMs = rotationSeconds === undefined ? undefined : rotationSeconds * 1_000;
  return { ...change, rotationMs, form: format, batchEvents: batch };
}

function toPlace(text: string | number): PlaceOrder {
  if (typeof text === "number") return { sequence: text };
  const time = parseDateTime(text);
  if (Number.isNaN(time)) throw parameterError(`${quote(text)} is not a valid time`);
  return time === undefined ? text : { time };
}

function toBound(query: AdminQuery, name: "from" | "before"): EventBound | undefined {
  const value = query[name];
  const place = value === undefined ? undefined : toPlace(value);
  if (typeof place !== "string") return place;
  throw parameterError(`${quote(name)} is neither a sequence nor a time (ISO 8601): ${quote(place)}`);
}

function toSearch(query: AdminQuery): SearchCall {
  const { groupId, state, topic, prefix, matches, host, owner, node, lagMin, failingMsMin } = query;
  const kind = webhookKinds.find((known) => known === query.kind);
  return { groupId, state, kind, topic, prefix, matches, host, owner, node, lagMin, failingMsMin };
}

function toSessionSearch(query: AdminQuery): SessionsCall {
  const { groupId, connected: isConnected, owner, node, lagMin } = query;
  return { groupId, kind: sessionKinds.find((known) => known === query.kind), isConnected, owner, node, lagMin };
}

function pageOf({ cursor, limit = pageLimitDefault }: AdminQuery): PageCall {
  return { after: cursor, limit };
}

/** For a short list: all of it, unless the query sets a limit. */
function wholePageOf({ cursor, limit = pageLimitMax }: AdminQuery): PageCall {
  return { after: cursor, limit };
}

function toPage<Item, Body>({ items, next }: Page<Item>, toBody: (item: Item) => Body) {
  return { items: items.map((item) => toBody(item)), ...(next !== undefined && { next }) };
}

function toSequence(text: string): number {
  if (/^\d{1,16}$/.test(text)) return Number(text);
  throw parameterError('"cursor" is not from this list');
}

/** A parameter of the path. It is never missing, since the route names it. */
function nameOf(params: AdminCall["params"], name: string): string {
  const value = params[name];
  if (value === undefined) throw new BrokerError("parameterInvalid", { details: `"${name}" is missing` });
  return value;
}
