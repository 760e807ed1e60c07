import { expect } from "vitest";
import type { HttpAnswer, HttpRequest } from "../../harness/http-client.ts";
import type { Random } from "../../harness/random.ts";
import type { Receiver } from "../../harness/receiver.ts";
import { until } from "../../harness/until.ts";

export type Send = (request: HttpRequest) => Promise<HttpAnswer>;

export const operatedTopic = "operated";

/** What a test knows of subscriptions that an operator moves to and fro while events are published and brokers die. */
export class OperatedSubscriptions {
  readonly #send: Send;
  readonly #random: Random;
  /** Orders to skip one event that were sent, whatever became of them. */
  skips = 0;
  /** Publishes that were acknowledged. */
  published = 0;
  carriedOut = 0;
  #isStopped = false;
  #running: Promise<unknown> = Promise.resolve();

  /** Sends each request to a broker that runs, as far as the caller knows. */
  constructor(send: Send, random: Random) {
    this.#send = send;
    this.#random = random;
  }

  async subscribe(url: string): Promise<string> {
    const answer = await this.#post("/rest/subscribe", { topic: operatedTopic, url });
    return JSON.parse(answer.text) as string; // The identifier.
  }

  /** Publishes, moves the first subscription back and holds it, and skips events of the second, until {@link stop}. */
  start(moved: string, skipped: string): void {
    this.#isStopped = false;
    this.#running = Promise.all([this.#publish(), this.#move(moved), this.#skip(skipped)]);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  /** Resumes both, and waits until every event has been acknowledged or skipped. */
  async untilDone(ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      await until(`${id} resumes`, async () => (await this.#order(id, "resume"))?.status === 200);
      await until(`${id} has no lag`, async () => (await this.#lagOf(id)) === 0, { timeoutMs: 60_000 });
    }
  }

  /** Sequences of all events of the topic, read page by page from the newest. */
  async listSequences(): Promise<readonly number[]> {
    const sequences: number[] = [];
    for (let cursor = ""; ; ) {
      const { items, next } = (
        await this.#get(`/admin/v1/topics/${operatedTopic}/events?limit=500${cursor}`)
      ).json() as { items: readonly { sequence: number }[]; next?: string }; // As the gateway's own test holds.
      sequences.push(...items.map(({ sequence }) => sequence));
      if (next === undefined) return sequences.toReversed();
      cursor = `&cursor=${next}`;
    }
  }

  async #lagOf(id: string): Promise<number> {
    const { lag } = (await this.#get(`/admin/v1/subscriptions/${id}`)).json() as { lag: number }; // The same.
    return lag;
  }

  async #publish(): Promise<void> {
    while (!this.#isStopped) {
      const body = { topic: operatedTopic, content: String(this.published) };
      const answer = await this.#post("/rest/publish", body).catch(() => undefined);
      if (answer?.text.includes('"SUCCESS"') === true) this.published += 1;
    }
  }

  async #move(id: string): Promise<void> {
    while (!this.#isStopped) {
      const name = this.#random.pick(["pause", "resume", "retry", "replay", "replay"]);
      const from = 1 + this.#random.below(Math.max(1, this.published));
      await this.#order(id, name, name === "replay" ? { from } : undefined);
      if (name === "pause") await this.#order(id, "resume");
    }
  }

  async #skip(id: string): Promise<void> {
    while (!this.#isStopped) {
      const name = this.#random.pick(["skip", "retry", "pause"]);
      if (name === "skip") this.skips += 1;
      await this.#order(id, name);
      if (name === "pause") await this.#order(id, "resume");
    }
  }

  /** Undefined where the broker died. */
  async #order(id: string, name: string, body?: unknown): Promise<HttpAnswer | undefined> {
    const answer = await this.#post(`/admin/v1/subscriptions/${id}/${name}`, body).catch(() => undefined);
    if (answer?.status === 200) this.carriedOut += 1;
    return answer;
  }

  #get(path: string): Promise<HttpAnswer> {
    return this.#send({ method: "GET", path });
  }

  #post(path: string, body: unknown = {}): Promise<HttpAnswer> {
    const headers = { "content-type": "application/json" };
    return this.#send({ method: "POST", path, headers, body: JSON.stringify(body) });
  }
}

/** Every event arrived, none before all earlier ones had: repeats go back, and nothing is passed over. */
export function expectNothingPassed(receiver: Receiver, sequences: readonly number[]): void {
  let newest = 0;
  for (const sequence of sequencesOf(receiver)) {
    expect(sequence).toBeLessThanOrEqual(newest + 1);
    newest = Math.max(newest, sequence);
  }
  expect(newest).toBe(sequences.at(-1));
}

/** Number of events that did not arrive. */
export function countMissing(receiver: Receiver, sequences: readonly number[]): number {
  const arrived = new Set(sequencesOf(receiver));
  return sequences.filter((sequence) => !arrived.has(sequence)).length;
}

function sequencesOf(receiver: Receiver): readonly number[] {
  return receiver.accepted().map(({ eventId }) => Number(eventId.split("-")[1]));
}
