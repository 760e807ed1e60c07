import { setTimeout as delay } from "node:timers/promises";
import { HttpClient } from "../../harness/http-client.ts";

/** Pause of a producer before it repeats a request, in milliseconds. */
const repeatPauseMs = 50;
/** Time without an answer after which a producer repeats its request, in milliseconds. */
const answerMsMax = 2_000;

/** A publish with its key, and the eventIds that the broker returned for it. */
export interface KeyedPublish {
  readonly key: string;
  readonly topic: string;
  readonly content: string;
  readonly eventIds: Set<string>;
  /** Number of requests sent. */
  tries: number;
}

interface SendResult {
  readonly status?: string;
  readonly eventId?: string;
}

/** Producers that give each publish a key, and repeat a request to the running broker until it answers with an event. */
export class KeyedLoad {
  readonly publishes: KeyedPublish[] = [];
  readonly #topics: readonly string[];
  readonly #label: string;
  #http: HttpClient | undefined;
  #isStopping = false;
  #running: Promise<void>[] = [];

  /** `label` distinguishes this load's keys from those of other loads. */
  constructor(topics: readonly string[], label: string) {
    this.#topics = topics;
    this.#label = label;
  }

  get answered(): number {
    return this.publishes.filter(({ eventIds }) => eventIds.size > 0).length;
  }

  start(producersPerTopic: number): void {
    const producers = this.#topics.flatMap((topic) => Array.from({ length: producersPerTopic }, () => topic));
    this.#running = producers.map((topic, index) => this.#produce(topic, index % 2 === 0));
  }

  /** Sends further requests to this broker, and aborts the requests that the former broker has not answered. */
  async pointTo(url: string): Promise<void> {
    const last = this.#http;
    this.#http = new HttpClient(url, { timeoutMs: answerMsMax });
    await last?.[Symbol.asyncDispose]();
  }

  /** Begins no new publish, and waits until every publish is answered with an event. */
  async finish(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#running);
  }

  /** Repeats every publish with its key, until the broker answers it again. */
  async repeatAll(): Promise<void> {
    for (const publish of this.publishes) await this.#untilAnswered(publish, publish.tries % 2 === 0);
  }

  async close(): Promise<void> {
    await this.#http?.[Symbol.asyncDispose]();
  }

  async #produce(topic: string, isRest: boolean): Promise<void> {
    while (!this.#isStopping) {
      const key = `${this.#label}-${this.publishes.length}`;
      const publish = { key, topic, content: `content of ${key}`, eventIds: new Set<string>(), tries: 0 };
      this.publishes.push(publish);
      await this.#untilAnswered(publish, isRest);
    }
  }

  async #untilAnswered(publish: KeyedPublish, isRest: boolean): Promise<void> {
    for (;;) {
      publish.tries += 1;
      const { status, eventId } = await this.#send(publish, isRest).catch((): SendResult => ({}));
      if (status === "SUCCESS" && eventId !== undefined) {
        publish.eventIds.add(eventId);
        return;
      }
      await delay(repeatPauseMs);
    }
  }

  async #send({ key, topic, content }: KeyedPublish, isRest: boolean): Promise<SendResult> {
    if (this.#http === undefined) return {};
    const type = { "content-type": "application/json" };
    if (isRest) {
      const headers = { ...type, "idempotency-key": key };
      const body = JSON.stringify({ topic, content });
      const answer = await this.#http.send({ method: "POST", path: "/rest/publish", headers, body });
      return answer.json() as SendResult; // A failure has neither field.
    }
    const params = { topic, content: Buffer.from(content).toString("base64"), idempotencyKey: key };
    const body = JSON.stringify({ jsonrpc: "2.0", id: key, method: "publish", params });
    const answer = await this.#http.send({ method: "POST", path: "/jsonrpc", headers: type, body });
    return (answer.json() as { readonly result?: SendResult }).result ?? {};
  }
}
