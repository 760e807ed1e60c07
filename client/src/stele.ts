import type { Proof, TopicInfo, TopicPageBody, TopicState } from "@stele/wire";
import { AdminClient } from "./admin.ts";
import { HttpTransport } from "./http-transport.ts";
import type { CallOptions, SteleOptions } from "./options.ts";
import {
  type Content,
  type Publication,
  publishMany,
  publishOne,
  type PublishOptions,
  type PublishOutcome,
  type Published,
} from "./publish.ts";
import { getReadiness, type Readiness } from "./readiness.ts";
import { getRights, type Rights } from "./rights.ts";
import { retriesDefault, withRetries } from "./retries.ts";
import { callRpc, toBoolean, toObject } from "./rpc.ts";
import { toProtocolError } from "./stele-error.ts";
import { type ReceivedCloudEvent, toReceivedCloudEvent } from "./tail/received-cloud-event.ts";
import { toReceivedEvent, type ReceivedEvent } from "./tail/received-event.ts";
import { Tail, type SubscribeOptions } from "./tail/tail.ts";

export interface ListOptions extends CallOptions {
  /** From 0. */
  readonly pageIndex?: number | undefined;
  /** 1 to 99. */
  readonly pageSize?: number | undefined;
}

/** Size of the pages that {@link Stele.topics} asks for: the largest that a broker allows. */
const pageSizeMax = 99;

/**
 * A client of one broker, or of a load balancer in front of several. It holds no connection of its own, so there is nothing to close. It repeats a failed
 * call where that is safe; if that does not help, the call throws SteleError.
 */
export class Stele {
  readonly #transport: HttpTransport;
  readonly #options: SteleOptions;
  readonly #retries: number;
  #admin: AdminClient | undefined;

  /** @throws TypeError if an address is not a URL of http or https, or has a user name or a password. */
  constructor(options: SteleOptions) {
    this.#options = options;
    this.#transport = new HttpTransport(options);
    this.#retries = options.retries ?? retriesDefault;
  }

  /** The calls for operators; see docs/admin.md. */
  get admin(): AdminClient {
    return (this.#admin ??= new AdminClient(this.#options));
  }

  /** Opens a topic. Resolves to true even if the topic is open already. */
  async open(topic: string, options: CallOptions = {}): Promise<boolean> {
    return toBoolean(this.#transport.base, await this.#call("open", { topic }, options));
  }

  /** Closes a topic: its events stay readable, but publishing to it fails. */
  async close(topic: string, options: CallOptions = {}): Promise<boolean> {
    return toBoolean(this.#transport.base, await this.#call("close", { topic }, options));
  }

  /** Whether a topic exists, open or closed. */
  async exist(topic: string, options: CallOptions = {}): Promise<boolean> {
    return toBoolean(this.#transport.base, await this.#call("exist", { topic }, options));
  }

  /** A topic with the number of its events and the block of the latest one. */
  async state(topic: string, options: CallOptions = {}): Promise<TopicState> {
    return toObject(this.#transport.base, await this.#call("state", { topic }, options)) as TopicState; // The broker guarantees this shape.
  }

  /** One page of topics, in the order in which they were opened. */
  async list({ pageIndex = 0, pageSize = 10, ...options }: ListOptions = {}): Promise<TopicPageBody> {
    const { base } = this.#transport;
    const page = toObject(base, await this.#call("list", { pageIndex, pageSize }, options)) as TopicPageBody; // The broker guarantees this shape.
    if (!Array.isArray(page.topicInfoList)) throw toProtocolError(base, "a result that is not a page of topics");
    return page;
  }

  /** All topics that the caller may read, page by page. */
  async *topics(options: CallOptions = {}): AsyncGenerator<TopicInfo, void, undefined> {
    for (let pageIndex = 0; ; pageIndex += 1) {
      const { topicInfoList, total } = await this.list({ ...options, pageIndex, pageSize: pageSizeMax });
      yield* topicInfoList; // It may be empty before the last page: `total` counts topics that the caller may not read.
      if (!((pageIndex + 1) * pageSizeMax < total)) return; // Also ends after an answer without `total`, which no broker sends.
    }
  }

  /** Publishes an event; resolves once it is on the chain and on disk. @throws SteleError 200201 if the broker does not learn this in time. */
  publish(topic: string, content: Content, options: PublishOptions = {}): Promise<Published> {
    const { extensions, once, ...rest } = options;
    return publishOne(this.#publisher(options), { topic, content, extensions, once }, rest);
  }

  /**
   * Publishes many events, in as few requests as possible. The outcomes are in the order of the events; each event succeeds or fails on its own.
   * An event that the client had to repeat may come after later ones.
   */
  publishMany(publications: readonly Publication[], options: CallOptions = {}): Promise<readonly PublishOutcome[]> {
    return publishMany(this.#publisher(options), publications, options);
  }

  /** An event by its identifier. */
  async getEvent(eventId: string, options: CallOptions = {}): Promise<ReceivedEvent> {
    return toReceivedEvent(await this.#call("getEvent", { eventId }, options));
  }

  /** The proof that an event is on the chain; `@stele/client/proof` verifies it. */
  async getProof(eventId: string, options: CallOptions = {}): Promise<Proof> {
    return toObject(this.#transport.base, await this.#call("getProof", { eventId }, options)) as Proof; // verifyProof checks it.
  }

  /** Whether the broker's groups can serve, and why not. The client does not repeat this call: "not ready" is an answer too. */
  readiness(options: CallOptions = {}): Promise<Readiness> {
    return getReadiness(this.#transport, { ...options, groupId: options.groupId ?? this.#options.groupId });
  }

  /** What this client may do with its key. */
  rights(options: CallOptions = {}): Promise<Rights> {
    return getRights(this.#transport, options);
  }

  /**
   * Events of one topic or pattern, or of several, as they come. The tail reconnects by itself, without a gap or a repeat, until the loop or the signal
   * ends it.
   */
  subscribe(topics: string | readonly string[], options: SubscribeOptions = {}): Tail {
    return new Tail(this.#transport, { ...this.#toTailOptions(topics, options), read: toReceivedEvent });
  }

  /** As {@link subscribe}, with each event as a CloudEvent 1.0. */
  subscribeCloudEvents(topics: string | readonly string[], options: SubscribeOptions = {}): Tail<ReceivedCloudEvent> {
    const form = { format: "cloudevents", read: toReceivedCloudEvent } as const;
    return new Tail(this.#transport, { ...this.#toTailOptions(topics, options), ...form });
  }

  #toTailOptions(topics: string | readonly string[], options: SubscribeOptions) {
    const groupId = options.groupId ?? this.#options.groupId;
    return { ...options, groupId, topics: typeof topics === "string" ? [topics] : topics, retries: this.#retries };
  }

  #publisher({ groupId = this.#options.groupId }: CallOptions) {
    const { extensionPrefix } = this.#options;
    return { transport: this.#transport, retries: this.#retries, groupId, extensionPrefix };
  }

  /** Calls any method except publish. A repeat is safe, because a second call changes nothing. */
  #call(method: string, params: Readonly<Record<string, unknown>>, options: CallOptions): Promise<unknown> {
    const { groupId = this.#options.groupId, signal } = options;
    const call = { method, params: groupId === undefined ? params : { ...params, groupId } };
    return withRetries(() => callRpc(this.#transport, call, options), {
      retries: this.#retries,
      isRepeatable: true,
      signal,
    });
  }
}
