import { type Api, apiOver, type Outcome, type Params } from "./apis.ts";
import { HttpClient, type HttpSender } from "./http-client.ts";

export interface SendResult {
  readonly topic: string;
  readonly eventId: string;
  readonly status: string;
}

export interface EventBody {
  readonly topic: string;
  readonly content: string;
  readonly extensions: Readonly<Record<string, string>>;
  readonly eventId: string;
}

export interface TopicInfo {
  readonly topicName: string;
  readonly topicAddress: string;
  readonly senderAddress: string;
  readonly createdTimestamp: number;
}

export interface TopicState extends TopicInfo {
  readonly sequenceNumber: number;
  readonly blockNumber: number;
}

export interface TopicPage {
  readonly total: number;
  readonly pageIndex: number;
  readonly pageSize: number;
  readonly topicInfoList: readonly TopicInfo[];
}

export interface ListingEntry {
  readonly interfaceType: string;
  readonly notifyingEventCount: string;
  readonly notifiedEventCount: string;
  readonly notifyTimeStamp: string;
  readonly subscribeId: string;
  readonly topicName: string;
}

/** The result of each operation. */
export interface Results {
  readonly open: boolean;
  readonly close: boolean;
  readonly exist: boolean;
  readonly publish: SendResult;
  readonly subscribe: string;
  readonly unSubscribe: boolean;
  readonly getEvent: EventBody;
  readonly list: TopicPage;
  readonly state: TopicState;
}

/** The broker answered with a failure. */
export class CallFailed extends Error {
  readonly code: number;

  constructor(operation: string, { code, message }: { readonly code: number; readonly message: string }) {
    super(`${operation}: ${code} ${message}`);
    this.code = code;
  }
}

/** A client for the setup of a test. The calls that the test checks go through an {@link Api}. */
export class Client implements AsyncDisposable {
  readonly http: HttpSender;
  readonly #rpc: Api;
  readonly #rest: Api;

  /** @param target a broker's base URL, or an object that sends requests to brokers */
  constructor(target: string | HttpSender) {
    this.http = typeof target === "string" ? new HttpClient(target) : target;
    this.#rpc = apiOver(this.http, "JSON-RPC");
    this.#rest = apiOver(this.http, "REST POST JSON");
  }

  open(topic: string): Promise<boolean> {
    return this.#ask(this.#rpc, "open", { topic });
  }

  close(topic: string): Promise<boolean> {
    return this.#ask(this.#rpc, "close", { topic });
  }

  exist(topic: string): Promise<boolean> {
    return this.#ask(this.#rpc, "exist", { topic });
  }

  publish(
    topic: string,
    content: string | Uint8Array,
    extensions: Readonly<Record<string, string>> = {},
  ): Promise<SendResult> {
    return this.#ask(this.#rpc, "publish", { topic, content, extensions });
  }

  /** Subscribes over REST, so that callbacks are RESTful. */
  subscribe(params: Params): Promise<string> {
    return this.#ask(this.#rest, "subscribe", params);
  }

  /** Subscribes over JSON-RPC, so that callbacks are JSON-RPC requests. */
  subscribeByRpc(params: Params): Promise<string> {
    return this.#ask(this.#rpc, "subscribe", params);
  }

  unSubscribe(subscriptionId: string): Promise<boolean> {
    return this.#ask(this.#rest, "unSubscribe", { subscriptionId });
  }

  getEvent(eventId: string): Promise<EventBody> {
    return this.#ask(this.#rpc, "getEvent", { eventId });
  }

  list(pageIndex = 0, pageSize = 99): Promise<TopicPage> {
    return this.#ask(this.#rpc, "list", { pageIndex, pageSize });
  }

  state(topic: string): Promise<TopicState> {
    return this.#ask(this.#rpc, "state", { topic });
  }

  /** Whether every group is ready. */
  async isReady(): Promise<boolean> {
    const answer = await this.http.send({ method: "GET", path: "/health/ready" });
    return (answer.json() as { status: string }).status === "ready"; // The gateway's tests check the shape.
  }

  /** For each group, the reason that it is not ready; undefined if it is ready. */
  async listGroupFailures(): Promise<readonly (string | undefined)[]> {
    const answer = await this.http.send({ method: "GET", path: "/health/ready" });
    return (answer.json() as { groups: readonly { reason?: string }[] }).groups.map(({ reason }) => reason); // As above.
  }

  /** For each group, its health warning; undefined if it has none. */
  async listGroupWarnings(): Promise<readonly (string | undefined)[]> {
    const answer = await this.http.send({ method: "GET", path: "/health/ready" });
    return (answer.json() as { groups: readonly { warning?: string }[] }).groups.map(({ warning }) => warning); // As above.
  }

  /** The admin listing: by node, then by subscription. */
  async listSubscriptions(): Promise<Readonly<Record<string, Readonly<Record<string, ListingEntry>>>>> {
    const answer = await this.http.send({ method: "GET", path: "/admin/listSubscription" });
    // Another check tests the shape.
    return answer.json() as Readonly<Record<string, Readonly<Record<string, ListingEntry>>>>;
  }

  /** The listing's entry for a subscription; undefined if no node lists it. */
  async findSubscription(id: string): Promise<ListingEntry | undefined> {
    return Object.values(await this.listSubscriptions()).find((entries) => id in entries)?.[id];
  }

  async #ask<Name extends keyof Results>(api: Api, operation: Name, params: Params): Promise<Results[Name]> {
    return take(operation, await api.call(operation, params));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.http[Symbol.asyncDispose]();
  }
}

/** The value of a successful outcome. @throws CallFailed with the code of a failure. */
export function take<Name extends keyof Results>(operation: Name, outcome: Outcome): Results[Name] {
  if (!outcome.isGood) throw new CallFailed(operation, outcome);
  return outcome.value as Results[Name]; // Other checks test the shapes of results.
}

/** The code of a failed call; undefined if it succeeded. */
export async function codeOf(call: Promise<unknown>): Promise<number | undefined> {
  try {
    await call;
    return undefined;
  } catch (error) {
    if (error instanceof CallFailed) return error.code;
    throw error;
  }
}
