import { afterAll, beforeAll, expect, it } from "vitest";
import type { Client } from "../harness/client.ts";
import { until } from "../harness/until.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";
import { createAsymmetric, createSymmetric, type Keys } from "./webhooks/keys.ts";
import { createOrderSender } from "./webhooks/order-sender.ts";
import { languages, WebhookReceiver } from "./webhooks/webhook-receiver.ts";

/** Largest number of published events that the slowest receiver may lack before publishing waits for it. */
const aheadMax = 40;
const topicCount = 4;
/** Smallest number of requests that each subscription gets between two steps of a rotation. */
const requestsBetween = 20;

const shapes = [
  { path: "rest", subscribe: "subscribe", params: {} },
  { path: "rpc", subscribe: "subscribeByRpc", params: {} },
  { path: "cloudevents", subscribe: "subscribe", params: { format: "cloudevents" } },
  { path: "batches", subscribe: "subscribe", params: { format: "cloudevents", batch: 10 } },
] as const;

const running = useWorld(embeddedWorld);
const receivers: WebhookReceiver[] = [];
beforeAll(async () => {
  for (const language of languages.filter(({ canRun }) => canRun)) {
    receivers.push(await WebhookReceiver.start(language, null));
  }
});
afterAll(() => {
  for (const receiver of receivers) receiver[Symbol.dispose]();
});

it("receivers refuse and lose no event while secrets rotate under load", async () => {
  const { client } = running();
  const load = new Load(client);
  await load.open();
  const subscribed = await Promise.all(receivers.map((receiver) => SubscribedReceiver.create(client, receiver)));
  await load.during(async () => {
    for (let round = 0; round < 4; round += 1) await Promise.all(subscribed.map((one) => one.rotate(round)));
  });
  for (const { receiver } of subscribed) {
    expect(receiver.requests.filter(({ status }) => status >= 300)).toEqual([]);
    for (const { path } of shapes) expect(load.byTopic(receiver.eventsOf(path))).toEqual(load.published);
  }
});

/** A receiver with a subscription for each shape. All its subscriptions have the same secret. */
class SubscribedReceiver {
  readonly receiver: WebhookReceiver;
  readonly #client: Client;
  #ids: readonly string[] = [];

  private constructor(client: Client, receiver: WebhookReceiver) {
    this.#client = client;
    this.receiver = receiver;
  }

  static async create(client: Client, receiver: WebhookReceiver): Promise<SubscribedReceiver> {
    const created = new SubscribedReceiver(client, receiver);
    const { secret, key } = createSymmetric();
    await receiver.verifyWith(key);
    const subscribe = ({ path, subscribe: name, params }: (typeof shapes)[number]): Promise<string> =>
      client[name]({ topic: "rotation/+", url: receiver.urlOf(path), offset: "OFFSET_FIRST", secret, ...params });
    created.#ids = await Promise.all(shapes.map(subscribe));
    return created;
  }

  /** Changes the subscriptions' secret, and then the receiver's key while the broker signs with both secrets. `round` chooses the kind of secret. */
  async rotate(round: number): Promise<void> {
    const { secret, key } = this.#next(round);
    await this.#awaitRequests("requests before the rotation", 1);
    await Promise.all(this.#ids.map((id) => createOrderSender(this.#client, id)("change", { secret })));
    await this.#awaitRequests("requests with both signatures", 2);
    await this.receiver.verifyWith(key);
    await this.#awaitRequests("requests after the receiver has changed its key", 2);
  }

  #next(round: number): Keys {
    const kinds = [createSymmetric, this.receiver.verifiesAsymmetric ? createAsymmetric : createSymmetric];
    return (kinds[round % kinds.length] ?? createSymmetric)();
  }

  /** Waits until each subscription has got {@link requestsBetween} new requests with at least this many signatures. */
  async #awaitRequests(what: string, signatures: number): Promise<void> {
    const { receiver } = this;
    const from = receiver.requests.length;
    await receiver.waitFor(what, () => {
      const seen = receiver.requests.slice(from).filter((request) => request.signatures.length >= signatures);
      return shapes.every(
        ({ path }) => seen.filter((request) => request.path === `/${path}`).length >= requestsBetween,
      );
    });
  }
}

/** Publishes to several topics at once, as fast as the receivers accept events. */
class Load {
  /** Identifiers of the published events by topic, in order. */
  readonly published: string[][] = Array.from({ length: topicCount }, () => []);
  readonly #client: Client;
  #isOver = false;

  constructor(client: Client) {
    this.#client = client;
  }

  async open(): Promise<void> {
    for (let topic = 0; topic < topicCount; topic += 1) await this.#client.open(nameOf(topic));
  }

  /** Publishes until `work` is done. Returns when the receivers have received all events. */
  async during(work: () => Promise<void>): Promise<void> {
    const publishing = this.published.map((ids, topic) => this.#publish(topic, ids));
    try {
      await work();
    } finally {
      this.#isOver = true;
      await Promise.all(publishing);
    }
    await until("every receiver has received all events", () => this.#ahead === 0);
  }

  /** Identifiers of these events by topic, in order. */
  byTopic(events: readonly { readonly id: string; readonly topic: string }[]): readonly (readonly string[])[] {
    return this.published.map((_, topic) =>
      events.filter((event) => event.topic === nameOf(topic)).map(({ id }) => id),
    );
  }

  async #publish(topic: number, ids: string[]): Promise<void> {
    while (!this.#isOver) {
      const { eventId } = await this.#client.publish(nameOf(topic), `{"n":${ids.length}}`, { "svc-format": "json" });
      ids.push(eventId);
      await until("the receivers keep up", () => this.#isOver || this.#ahead < aheadMax);
    }
  }

  get #ahead(): number {
    const counts = receivers.flatMap((receiver) => shapes.map(({ path }) => receiver.countOf(path)));
    return this.published.reduce((sum, ids) => sum + ids.length, 0) - Math.min(...counts);
  }
}

function nameOf(topic: number): string {
  return `rotation/${topic}`;
}
