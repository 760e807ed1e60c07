import type {
  AccessRuleBody,
  AdminBlock,
  AdminDeadLetter,
  AdminEvent,
  AdminEventDetails,
  AdminFigures,
  AdminGroups,
  AdminNodes,
  AdminRole,
  AdminSession,
  AdminSkipped,
  AdminSubscription,
  AdminSubscriptionDetails,
  AdminTopic,
  AdminTopicDetails,
  OrderName,
  OrderResultBody,
  SkippedListing,
} from "@stele/wire";
import { HttpDoor, isRecord } from "./http-door.ts";
import type { Open } from "./lib/open.ts";
import type { CallOptions, SteleOptions } from "./options.ts";
import { retriesDefault, withRetries } from "./retries.ts";
import { toFailure, toStrangeAnswer } from "./stele-error.ts";

export type {
  AdminBlock,
  AdminDeadLetter,
  AdminEvent,
  AdminEventDetails,
  AdminFigures,
  AdminGroups,
  AdminNodes,
  AdminSession,
  AdminSkipped,
  AdminSubscription,
  AdminSubscriptionDetails,
  AdminTopic,
  AdminTopicDetails,
  OrderName,
  OrderResultBody,
  SkippedListing,
} from "@stele/wire";
export type { Open } from "./lib/open.ts";

/** What a search for subscriptions asks for; docs/admin.md explains each. */
export interface SubscriptionSearch {
  readonly groupId?: string | undefined;
  readonly state?: string | undefined;
  readonly kind?: string | undefined;
  readonly topic?: string | undefined;
  readonly prefix?: string | undefined;
  /** A topic whose events it gets. */
  readonly matches?: string | undefined;
  readonly host?: string | undefined;
  readonly owner?: string | undefined;
  readonly node?: string | undefined;
  readonly lagMin?: number | undefined;
  readonly failingMsMin?: number | undefined;
}

/** What a search for sessions asks for; docs/admin.md explains each. */
export interface SessionSearch {
  readonly groupId?: string | undefined;
  readonly kind?: string | undefined;
  readonly connected?: boolean | undefined;
  readonly owner?: string | undefined;
  readonly node?: string | undefined;
  readonly lagMin?: number | undefined;
}

/** A subscription's identifier, a search for several, or `all`. */
export type OrderTarget = string | SubscriptionSearch | { readonly all: true };

/** A place in a subscription: `OFFSET_FIRST`, `OFFSET_LAST`, an eventId, a time (ISO 8601), or a sequence of its topic. */
export type Place = string | number;

export interface Order {
  readonly name: OrderName;
  /** For `skip`. */
  readonly to?: Place | undefined;
  /** For `replay`. */
  readonly from?: Place | undefined;
  /** For `redeliver` and `discard`, which concern all dead letters without it. */
  readonly eventId?: string | undefined;
  /** Changes nothing, and says what the order would concern. */
  readonly dryRun?: boolean | undefined;
}

type Query = Readonly<Record<string, string | number | boolean | undefined>>;

interface Page<Item> {
  readonly items: readonly Item[];
  readonly next?: string;
}

interface AdminRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly query?: Query;
  readonly body?: unknown;
}

const pageLimit = 500;

/** How a list is read. */
interface Paging {
  /** Items of one page, for a caller that wants few; 500 if left out. */
  readonly limit?: number | undefined;
}

/** The admin API (docs/admin.md), also at hand as `stele.admin`. Lists are read page by page while they are iterated. */
export class AdminClient {
  readonly #door: HttpDoor;
  readonly #retries: number;

  /** @throws TypeError if an address is no URL of http or https. */
  constructor(options: SteleOptions) {
    this.#door = new HttpDoor(options);
    this.#retries = options.retries ?? retriesDefault;
  }

  subscriptions(
    search: SubscriptionSearch = {},
    { limit, ...options }: CallOptions & Paging = {},
  ): AsyncGenerator<Open<AdminSubscription>> {
    return this.#pages({ method: "GET", path: "/subscriptions", query: { ...search, limit } }, options);
  }

  subscription(id: string, options: CallOptions = {}): Promise<Open<AdminSubscriptionDetails>> {
    return this.#get(`/subscriptions/${encodeURIComponent(id)}`, {}, options);
  }

  /** Events that a subscription was skipped past, in their order. */
  deadLetters(id: string, options: CallOptions = {}): AsyncGenerator<Open<AdminDeadLetter>> {
    return this.#pages({ method: "GET", path: `/subscriptions/${encodeURIComponent(id)}/dead-letters` }, options);
  }

  /**
   * Pauses, resumes, retries, skips or replays one subscription or several. An order for one throws what it refuses; of several, each result says it.
   * Repeating an order is safe but for a `skip` without `to`, which is therefore not repeated.
   */
  async *order(order: Order, target: OrderTarget, options: CallOptions = {}): AsyncGenerator<Open<OrderResultBody>> {
    const { name, dryRun } = order;
    const body = toBody(order);
    const method = "POST";
    if (typeof target === "string") {
      const path = `/subscriptions/${encodeURIComponent(target)}/${name}`;
      yield (await this.#ask({ method, path, query: { dryRun }, body }, options)) as Open<OrderResultBody>; // As OpenAPI has it.
      return;
    }
    yield* this.#pages<Open<OrderResultBody>>(
      { method, path: `/subscriptions/${name}`, query: { ...target, dryRun }, body },
      options,
    );
  }

  /** Of MQTT, STOMP and tails, with their lag. */
  sessions(
    search: SessionSearch = {},
    { limit, ...options }: CallOptions & Paging = {},
  ): AsyncGenerator<Open<AdminSession>> {
    return this.#pages({ method: "GET", path: "/sessions", query: { ...search, limit } }, options);
  }

  session(id: string, options: CallOptions = {}): Promise<Open<AdminSession>> {
    return this.#get(`/sessions/${encodeURIComponent(id)}`, {}, options);
  }

  topics({
    groupId,
    ...options
  }: CallOptions & { readonly prefix?: string; readonly filter?: string } = {}): AsyncGenerator<Open<AdminTopic>> {
    const { prefix, filter } = options;
    return this.#pages({ method: "GET", path: "/topics", query: { groupId, prefix, filter } }, options);
  }

  topic(name: string, options: CallOptions = {}): Promise<Open<AdminTopicDetails>> {
    return this.#get(`/topics/${encodeURIComponent(name)}`, { groupId: options.groupId }, options);
  }

  /**
   * Events of a topic with their places on the chain, the newest first: of a range, from a sequence or a time (ISO 8601) on, and before another one.
   */
  events(
    topic: string,
    options: CallOptions & Paging & { readonly from?: number | string; readonly before?: number | string } = {},
  ): AsyncGenerator<Open<AdminEvent>> {
    const { groupId, from, before, limit } = options;
    const path = `/topics/${encodeURIComponent(topic)}/events`;
    return this.#pages({ method: "GET", path, query: { groupId, from, before, limit } }, options);
  }

  event(eventId: string, options: CallOptions & { readonly proof?: boolean } = {}): Promise<Open<AdminEventDetails>> {
    const { groupId, proof } = options;
    return this.#get(`/events/${encodeURIComponent(eventId)}`, { groupId, proof }, options);
  }

  groups(options: CallOptions = {}): AsyncGenerator<Open<AdminGroups["items"][number]>> {
    return this.#pages({ method: "GET", path: "/groups" }, options);
  }

  /** Entries on the chain that the index of a group skipped, the newest first, page by page. */
  skippedEntriesOf(
    groupId: string,
    { limit, ...options }: CallOptions & Paging = {},
  ): AsyncGenerator<Open<AdminSkipped>> {
    const path = `/groups/${encodeURIComponent(groupId)}/skipped-entries`;
    return this.#pages({ method: "GET", path, query: { limit } }, options);
  }

  /** Blocks that have events, with their batches, the newest first. */
  blocks({
    below,
    limit,
    ...options
  }: CallOptions & Paging & { readonly below?: number | undefined } = {}): AsyncGenerator<Open<AdminBlock>> {
    const query = { groupId: options.groupId, limit, cursor: below };
    return this.#pages({ method: "GET", path: "/blocks", query }, options);
  }

  /** The same in one listing, by the call of REST: of the group that the options name, at most 10,000. */
  async skippedEntries({
    limit,
    ...options
  }: CallOptions & { readonly limit?: number } = {}): Promise<Open<SkippedListing>> {
    const { groupId } = options;
    return (await this.#askAt(
      "/admin/skippedEntries",
      { method: "GET", query: { groupId, limit } },
      options,
    )) as Open<SkippedListing>; // As OpenAPI has it.
  }

  nodes(options: CallOptions = {}): AsyncGenerator<Open<AdminNodes["items"][number]>> {
    return this.#pages({ method: "GET", path: "/nodes" }, options);
  }

  /** The newest changes of the cluster that the node that answers has seen since it started, newest first. */
  async nodeHistory(options: CallOptions = {}): Promise<Open<AdminNodes["history"]>> {
    const { history } = await this.#get<Open<AdminNodes>>("/nodes", { limit: 1 }, options);
    return history;
  }

  figures(options: CallOptions = {}): Promise<Open<AdminFigures>> {
    return this.#get("/figures", {}, options);
  }

  /** Roles of the config file and of the store, by name. */
  roles(options: CallOptions = {}): AsyncGenerator<Open<AdminRole>> {
    return this.#pages({ method: "GET", path: "/roles" }, options);
  }

  /** Makes a role of the store, or replaces its rules. */
  async setRole(name: string, rules: readonly AccessRuleBody[], options: CallOptions = {}): Promise<Open<AdminRole>> {
    const path = `/roles/${encodeURIComponent(name)}`;
    return (await this.#ask({ method: "PUT", path, body: { rules } }, options)) as Open<AdminRole>; // As OpenAPI has it.
  }

  /** Removes a role from the store: whoever has a key with it is refused. */
  async deleteRole(name: string, options: CallOptions = {}): Promise<void> {
    await this.#ask({ method: "DELETE", path: `/roles/${encodeURIComponent(name)}` }, options);
  }

  async *#pages<Item>(request: AdminRequest, options: CallOptions): AsyncGenerator<Item> {
    const { limit = pageLimit, cursor: first, ...query } = request.query ?? {};
    let cursor = first;
    do {
      const page = (await this.#ask({ ...request, query: { ...query, limit, cursor } }, options)) as Page<Item>; // As OpenAPI has it.
      yield* page.items;
      cursor = page.next;
    } while (cursor !== undefined);
  }

  async #get<Result>(path: string, query: Query, options: CallOptions): Promise<Result> {
    return (await this.#ask({ method: "GET", path, query }, options)) as Result; // As OpenAPI has it.
  }

  #ask(request: AdminRequest, options: CallOptions): Promise<unknown> {
    return this.#askAt(`/admin/v1${request.path}`, request, options);
  }

  #askAt(
    path: string,
    { method, query = {}, body }: Omit<AdminRequest, "path">,
    options: CallOptions,
  ): Promise<unknown> {
    const values = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined) values.set(name, String(value));
    const text = values.toString();
    const url = `${this.#door.adminBase}${path}${text === "" ? "" : `?${text}`}`;
    const json =
      body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const isSkip = path.endsWith("/skip") && !(isRecord(body) && "to" in body);
    return withRetries(
      async () => {
        const answer = await this.#door.ask({ url, method, ...json }, options);
        // A listing of REST fails with status 200; no other answer has a code of its own.
        const problem = toProblem(answer);
        if (problem === undefined && answer.status === 200) return answer.value;
        throw problem ?? toStrangeAnswer(url, `status ${answer.status}`);
      },
      { retries: this.#retries, isRepeatable: !isSkip, signal: options.signal },
    );
  }
}

function toBody({ name, to, from, eventId }: Order): object {
  if (name === "redeliver" || name === "discard") return eventId === undefined ? { all: true } : { eventId };
  return { ...(to === undefined ? {} : { to }), ...(from === undefined ? {} : { from }) };
}

/** A problem (RFC 9457), or the failure of REST for callers that may not call. */
function toProblem({ value, retryAfterMs }: { readonly value: unknown; readonly retryAfterMs: number | undefined }) {
  if (!isRecord(value) || typeof value["code"] !== "number") return undefined;
  const { code, detail, message, retry, hints } = value;
  return toFailure(
    { code, message: String(detail ?? message) },
    {
      retryAfterMs,
      ...(typeof retry === "boolean" ? { retry } : {}),
      ...(Array.isArray(hints) ? { hints: hints.map(String) } : {}),
    },
  );
}
