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
  OrderResultBody,
  SkippedListing,
} from "@stele/wire";
import { HttpTransport, isRecord, toForeignAnswerError } from "./http-transport.ts";
import type { Open } from "./lib/open.ts";
import type { CallOptions, SteleOptions } from "./options.ts";
import { isUnsafeToRepeat, type Order, type OrderResult, toOrderBody, toOrderResult } from "./order.ts";
import { retriesDefault, withRetries } from "./retries.ts";
import { isBrokerCode, SteleError, toFailure, toProtocolError, withUnknownOutcome } from "./stele-error.ts";

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
export { isUnsafeToRepeat, type Order, type OrderResult, type Place } from "./order.ts";

/**
 * Conditions of a search for subscriptions; docs/admin.md explains each field. A search that names no group covers the client's group, or all groups if the
 * client has none.
 */
export interface SubscriptionSearch {
  readonly groupId?: string | undefined;
  readonly state?: string | undefined;
  readonly kind?: string | undefined;
  readonly topic?: string | undefined;
  readonly prefix?: string | undefined;
  /** A topic name: finds the subscriptions that receive its events. */
  readonly matches?: string | undefined;
  readonly host?: string | undefined;
  readonly owner?: string | undefined;
  readonly node?: string | undefined;
  readonly lagMin?: number | undefined;
  readonly failingMsMin?: number | undefined;
}

/** Conditions of a search for sessions; the same rules hold as for {@link SubscriptionSearch}. */
export interface SessionSearch {
  readonly groupId?: string | undefined;
  readonly kind?: string | undefined;
  readonly connected?: boolean | undefined;
  readonly owner?: string | undefined;
  readonly node?: string | undefined;
  readonly lagMin?: number | undefined;
}

/** A subscription's identifier, a search for several, or `all`: every subscription of the client's group, or of all groups if the client has none. */
export type OrderTarget = string | SubscriptionSearch | { readonly all: true };

type Query = Readonly<Record<string, string | number | boolean | undefined>>;

interface Page<Item> {
  readonly items: readonly Item[];
  readonly next?: string;
}

interface Answer {
  readonly value: unknown;
  /** Whether an earlier try of the same request may have taken effect. */
  readonly isDoubtful: boolean;
}

type AskedPage<Item> = Pick<Page<Item>, "items"> & Pick<Answer, "isDoubtful">;

interface AdminRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly query?: Query;
  readonly body?: unknown;
  /** Whether the client may repeat the request after a lost answer; true if left out. */
  readonly isRepeatable?: boolean;
}

const pageLimit = 500;
const roleNotExist = 100704;

interface Paging {
  /** Items per page; 500 if left out. */
  readonly limit?: number | undefined;
}

/** The admin API (docs/admin.md), also available as `stele.admin`. A list fetches its next page when its loop needs it. */
export class AdminClient {
  readonly #transport: HttpTransport;
  readonly #retries: number;
  readonly #groupId: string | undefined;

  /** @throws TypeError if an address is not a URL of http or https, or has a user name or a password. */
  constructor(options: SteleOptions) {
    this.#transport = new HttpTransport(options);
    this.#retries = options.retries ?? retriesDefault;
    this.#groupId = options.groupId;
  }

  subscriptions(
    search: SubscriptionSearch = {},
    { limit, ...options }: CallOptions & Paging = {},
  ): AsyncGenerator<Open<AdminSubscription>> {
    const query = { ...withGroup(search, this.#groupOf(options)), limit };
    return this.#pages({ method: "GET", path: "/subscriptions", query }, options);
  }

  subscription(id: string, options: CallOptions = {}): Promise<Open<AdminSubscriptionDetails>> {
    return this.#get(`/subscriptions/${encodeURIComponent(id)}`, {}, options);
  }

  /** Dead letters of a subscription, in the order of their events. */
  deadLetters(id: string, options: CallOptions = {}): AsyncGenerator<Open<AdminDeadLetter>> {
    return this.#pages({ method: "GET", path: `/subscriptions/${encodeURIComponent(id)}/dead-letters` }, options);
  }

  /**
   * Sends an order, such as `pause` or `replay`, to one subscription or several. For one, a failed order throws. For several, the result of a failed
   * subscription has an `error`, and `wasRefused` says whether the order surely changed nothing there. The client retries every order unless a repeat would
   * skip further events ({@link isUnsafeToRepeat}). `wasRefused` of a thrown error is false once the broker has answered for some subscriptions.
   */
  async *order(order: Order, target: OrderTarget, options: CallOptions = {}): AsyncGenerator<OrderResult> {
    const { name, dryRun } = order;
    const body = toOrderBody(order);
    const method = "POST";
    const isRepeatable = dryRun === true || !isUnsafeToRepeat(order);
    if (typeof target === "string") {
      const path = `/subscriptions/${encodeURIComponent(target)}/${name}`;
      yield (await this.#ask({ method, path, query: { dryRun }, body, isRepeatable }, options)) as OrderResult; // OpenAPI declares this shape.
      return;
    }
    // A target that finds everything, such as a blank host, gets no group, so that the broker refuses the order.
    const groupId = Object.values(target).some(narrowsSearch) ? this.#groupOf(options) : undefined;
    const query = { ...withGroup(target, groupId), dryRun };
    let hasResults = false;
    try {
      const request = { method, path: `/subscriptions/${name}`, query, body, isRepeatable } as const;
      for await (const { items, isDoubtful } of this.#pagesOf<Open<OrderResultBody>>(request, options)) {
        for (const item of items) {
          hasResults = true;
          yield toOrderResult(item, { dryRun, isDoubtful });
        }
      }
    } catch (error) {
      // The broker has carried out the order for the subscriptions of an earlier page.
      throw hasResults && !dryRun && error instanceof SteleError ? withUnknownOutcome(error) : error;
    }
  }

  /** Sessions of MQTT, STOMP and tails, with their lag. */
  sessions(
    search: SessionSearch = {},
    { limit, ...options }: CallOptions & Paging = {},
  ): AsyncGenerator<Open<AdminSession>> {
    const query = { ...withGroup(search, this.#groupOf(options)), limit };
    return this.#pages({ method: "GET", path: "/sessions", query }, options);
  }

  session(id: string, options: CallOptions = {}): Promise<Open<AdminSession>> {
    return this.#get(`/sessions/${encodeURIComponent(id)}`, {}, options);
  }

  topics(
    options: CallOptions & { readonly prefix?: string | undefined; readonly filter?: string | undefined } = {},
  ): AsyncGenerator<Open<AdminTopic>> {
    const groupId = this.#groupOf(options);
    const { prefix, filter } = options;
    return this.#pages({ method: "GET", path: "/topics", query: { groupId, prefix, filter } }, options);
  }

  topic(name: string, options: CallOptions = {}): Promise<Open<AdminTopicDetails>> {
    return this.#get(`/topics/${encodeURIComponent(name)}`, { groupId: this.#groupOf(options) }, options);
  }

  /**
   * Events of a topic with their places on the chain, newest first. `from` is the oldest event of the range, and `before` the first event after the range.
   * Each is a sequence or a time (ISO 8601).
   */
  events(
    topic: string,
    options: CallOptions &
      Paging & { readonly from?: number | string | undefined; readonly before?: number | string | undefined } = {},
  ): AsyncGenerator<Open<AdminEvent>> {
    const groupId = this.#groupOf(options);
    const { from, before, limit } = options;
    const path = `/topics/${encodeURIComponent(topic)}/events`;
    return this.#pages({ method: "GET", path, query: { groupId, from, before, limit } }, options);
  }

  event(
    eventId: string,
    options: CallOptions & { readonly proof?: boolean | undefined } = {},
  ): Promise<Open<AdminEventDetails>> {
    const query = { groupId: this.#groupOf(options), proof: options.proof };
    return this.#get(`/events/${encodeURIComponent(eventId)}`, query, options);
  }

  groups(options: CallOptions = {}): AsyncGenerator<Open<AdminGroups["items"][number]>> {
    return this.#pages({ method: "GET", path: "/groups" }, options);
  }

  /** Entries on the chain that the index of a group skipped, newest first. */
  skippedEntriesOf(
    groupId: string,
    { limit, ...options }: CallOptions & Paging = {},
  ): AsyncGenerator<Open<AdminSkipped>> {
    const path = `/groups/${encodeURIComponent(groupId)}/skipped-entries`;
    return this.#pages({ method: "GET", path, query: { limit } }, options);
  }

  /** Blocks that have events, with their batches, newest first. The list begins below block `below`; if that is left out, with the newest block. */
  blocks({
    below,
    limit,
    ...options
  }: CallOptions & Paging & { readonly below?: number | undefined } = {}): AsyncGenerator<Open<AdminBlock>> {
    const query = { groupId: this.#groupOf(options), limit, cursor: below };
    return this.#pages({ method: "GET", path: "/blocks", query }, options);
  }

  /** Skipped entries of one group, newest first, from a single REST call. `limit` is at most 10,000; 100 if left out. */
  async skippedEntries({
    limit,
    ...options
  }: CallOptions & { readonly limit?: number | undefined } = {}): Promise<Open<SkippedListing>> {
    const query = { groupId: this.#groupOf(options), limit };
    const { value } = await this.#askAt("/admin/skippedEntries", { method: "GET", query }, options);
    return value as Open<SkippedListing>; // OpenAPI declares this shape.
  }

  nodes(options: CallOptions = {}): AsyncGenerator<Open<AdminNodes["items"][number]>> {
    return this.#pages({ method: "GET", path: "/nodes" }, options);
  }

  /** Changes of the cluster that the answering node has seen since its start, newest first. */
  async nodeHistory(options: CallOptions = {}): Promise<Open<AdminNodes["history"]>> {
    const { history } = await this.#get<Open<AdminNodes>>("/nodes", { limit: 1 }, options);
    return history;
  }

  figures(options: CallOptions = {}): Promise<Open<AdminFigures>> {
    return this.#get("/figures", {}, options);
  }

  /** Roles of the config file and of the store, sorted by name. */
  roles(options: CallOptions = {}): AsyncGenerator<Open<AdminRole>> {
    return this.#pages({ method: "GET", path: "/roles" }, options);
  }

  /** Creates a role in the store, or replaces its rules. */
  async setRole(name: string, rules: readonly AccessRuleBody[], options: CallOptions = {}): Promise<Open<AdminRole>> {
    const path = `/roles/${encodeURIComponent(name)}`;
    return (await this.#ask({ method: "PUT", path, body: { rules } }, options)) as Open<AdminRole>; // OpenAPI declares this shape.
  }

  /** Removes a role from the store. The broker then refuses every key that has this role. */
  async deleteRole(name: string, options: CallOptions = {}): Promise<void> {
    try {
      await this.#ask({ method: "DELETE", path: `/roles/${encodeURIComponent(name)}` }, options);
    } catch (error) {
      // If an earlier try, whose answer was lost, may have removed the role, its absence is no failure: either way the role is gone.
      const isGone = error instanceof SteleError && error.code === roleNotExist && !error.wasRefused;
      if (!isGone) throw error;
    }
  }

  #groupOf({ groupId }: CallOptions): string | undefined {
    return groupId ?? this.#groupId;
  }

  async *#pages<Item>(request: AdminRequest, options: CallOptions): AsyncGenerator<Item> {
    for await (const { items } of this.#pagesOf<Item>(request, options)) yield* items;
  }

  async *#pagesOf<Item>(request: AdminRequest, options: CallOptions): AsyncGenerator<AskedPage<Item>> {
    const { limit = pageLimit, cursor: first, ...query } = request.query ?? {};
    let cursor = first;
    do {
      const asked = { ...request, query: { ...query, limit, cursor } };
      const { value, isDoubtful } = await this.#askAt(toPath(request), asked, options);
      const { items, next } = value as Page<Item>; // OpenAPI declares this shape.
      if (!Array.isArray(items))
        throw toProtocolError(this.#transport.adminBase, "an answer that is not a page of a list");
      yield { items, isDoubtful };
      cursor = next;
    } while (cursor !== undefined);
  }

  async #get<Result>(path: string, query: Query, options: CallOptions): Promise<Result> {
    return (await this.#ask({ method: "GET", path, query }, options)) as Result; // OpenAPI declares this shape.
  }

  async #ask(request: AdminRequest, options: CallOptions): Promise<unknown> {
    return (await this.#askAt(toPath(request), request, options)).value;
  }

  #askAt(
    path: string,
    { method, query = {}, body, isRepeatable = true }: Omit<AdminRequest, "path">,
    options: CallOptions,
  ): Promise<Answer> {
    const values = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined) values.set(name, String(value));
    const text = values.toString();
    const url = `${this.#transport.adminBase}${path}${text === "" ? "" : `?${text}`}`;
    const json =
      body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    return withRetries(
      async (isDoubtful) => {
        checkPath(path);
        const answer = await this.#transport.ask({ url, method, ...json }, options);
        // A REST listing reports a failure with status 200. Only failures have a numeric `code`.
        const problem = toProblem(answer);
        if (problem === undefined && answer.status === 200 && isRecord(answer.value))
          return { value: answer.value, isDoubtful };
        throw problem ?? toForeignAnswerError(url, answer);
      },
      { retries: this.#retries, isRepeatable, signal: options.signal },
    );
  }
}

function toPath({ path }: AdminRequest): string {
  return `/admin/v1${path}`;
}

/** @throws SteleError for a name `.` or `..`: `fetch` removes such a segment, even an encoded one, and the request would reach another address. */
function checkPath(path: string): void {
  const segment = path.split("/").find((text) => text === "." || text === "..");
  if (segment === undefined) return;
  throw new SteleError(`a URL cannot contain the name "${segment}"`, { retry: false, wasRefused: true });
}

/** The search with `groupId`, unless the search names a group itself. */
function withGroup<Search extends object>(
  search: Search & { readonly groupId?: string | undefined },
  groupId: string | undefined,
): Search & { readonly groupId: string | undefined } {
  return { ...search, groupId: search.groupId ?? groupId };
}

/** Whether a condition narrows the search. A blank text or a minimum of 0 does not: it probably comes from an unset variable of a script. */
function narrowsSearch(value: unknown): boolean {
  return value !== undefined && value !== "" && value !== 0;
}

/** The error in a problem (RFC 9457) or in a REST failure; undefined for any other answer. */
function toProblem({ value, retryAfterMs }: { readonly value: unknown; readonly retryAfterMs: number | undefined }) {
  if (!isRecord(value) || !isBrokerCode(value["code"])) return undefined;
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
