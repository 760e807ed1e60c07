import type { HttpAnswer, HttpRequest } from "../../../harness/http-client.ts";
import type { Random } from "../../../harness/random.ts";

export type Send = (request: HttpRequest) => Promise<HttpAnswer>;

export const operatedTopic = "operated";
/** A topic that `operated/#` matches. An order makes `operated/#` the filter of a subscription for a while. */
export const sideTopic = "operated/side";

const json = { "content-type": "application/json" };

/** Sends operator orders to brokers that may die meanwhile, and counts the orders that a broker carried out. */
export class Orders {
  readonly random: Random;
  /** How often brokers carried out each order, by its `what`. */
  readonly carriedOut = new Map<string, number>();
  readonly #send: Send;

  constructor(send: Send, random: Random) {
    this.#send = send;
    this.random = random;
  }

  /** `name` is the last segment of the order's path; `what` distinguishes orders of one name. Returns undefined if the broker died. */
  async give(id: string, order: { readonly name: string; readonly what?: string; readonly body?: object }) {
    const { name, what = name, body } = order;
    const answer = await this.post(`/admin/v1/subscriptions/${id}/${name}`, body).catch(() => undefined);
    if (answer?.status === 200) this.carriedOut.set(what, (this.carriedOut.get(what) ?? 0) + 1);
    return answer;
  }

  async get<Body>(path: string): Promise<Body> {
    return (await this.#send({ method: "GET", path })).json() as Body; // Documented in OpenAPI.
  }

  post(path: string, body: object = {}): Promise<HttpAnswer> {
    return this.#send({ method: "POST", path, headers: json, body: JSON.stringify(body) });
  }

  async subscribe(parameters: object): Promise<string> {
    const answer = await this.post("/rest/subscribe", { topic: operatedTopic, ...parameters });
    return JSON.parse(answer.text) as string; // REST returns the identifier.
  }

  async publish(topic: string, content: string): Promise<string | undefined> {
    const answer = await this.post("/rest/publish", { topic, content }).catch(() => undefined);
    if (answer?.text.includes('"SUCCESS"') !== true) return undefined;
    return (answer.json() as { readonly eventId: string }).eventId; // A SendResult.
  }

  /** Identifiers of all events of the operated topic, in order. */
  async listEvents(): Promise<readonly string[]> {
    const ids: string[] = [];
    for (let cursor = ""; ; ) {
      const path = `/admin/v1/topics/${operatedTopic}/events?limit=500${cursor}`;
      const { items, next } = await this.get<{ items: readonly { eventId: string }[]; next?: string }>(path);
      ids.push(...items.map(({ eventId }) => eventId));
      if (next === undefined) return ids.toReversed();
      cursor = `&cursor=${next}`;
    }
  }
}

export function sequenceOf(eventId: string): number {
  return Number(eventId.split("-")[1]);
}
