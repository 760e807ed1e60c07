import { setTimeout as delay } from "node:timers/promises";
import { type Api, apiOver } from "../../harness/apis.ts";
import { HttpClient } from "../../harness/http-client.ts";
import type { Random } from "../../harness/random.ts";
import { publishApis, refusedPauseMs } from "./publish-load.ts";
import { PublisherRun } from "./publisher-run.ts";
import { PublishRecord } from "./publish-record.ts";

export interface ClusterLoadOptions {
  readonly topics: readonly string[];
  readonly publishersPerTopic: number;
  /** URLs of all nodes, running or not. */
  readonly urls: readonly string[];
  readonly random: Random;
}

/** Request timeout in milliseconds. Without it, all publishers would soon wait for a frozen node. */
const patienceMs = 6000;

/** A node, as publishers see it. */
interface Target {
  readonly http: HttpClient;
  readonly apis: readonly Api[];
}

/**
 * Publishers that send one event after another, every event to a random node. If a publish fails, its publisher makes a second try at another node,
 * with another content.
 */
export class ClusterLoad extends PublishRecord {
  /** Why second tries failed. */
  readonly failures: string[] = [];
  /** Number of second tries. */
  retries = 0;
  readonly #options: ClusterLoadOptions;
  #targets: readonly Target[] = [];
  #running: PublisherRun | undefined;

  constructor(options: ClusterLoadOptions) {
    super();
    this.#options = options;
  }

  start(): void {
    const { topics, publishersPerTopic, urls } = this.#options;
    const targets = urls.map((url) => {
      const http = new HttpClient(url, { timeoutMs: patienceMs });
      return { http, apis: publishApis.map((name) => apiOver(http, name)) };
    });
    const publishers = topics.flatMap((topic) =>
      Array.from(
        { length: publishersPerTopic },
        () =>
          async (isStopping: () => boolean): Promise<void> =>
            this.#publish(topic, isStopping),
      ),
    );
    this.#targets = targets;
    this.#running = new PublisherRun(
      targets.map(({ http }) => http),
      publishers,
    );
  }

  /** Stops after the publishes in progress. */
  async stop(): Promise<void> {
    await this.#running?.stop();
    this.#running = undefined;
  }

  /** Publishes many events to one topic at once, while the publishers run. */
  async burst(topic: string, count: number): Promise<void> {
    const { random } = this.#options;
    const tries = Array.from({ length: count }, () => this.#try(topic, random.pick(this.#targets)));
    await Promise.all(tries);
  }

  async #publish(topic: string, isStopping: () => boolean): Promise<void> {
    const { random } = this.#options;
    while (!isStopping()) {
      const first = random.pick(this.#targets);
      if ((await this.#try(topic, first)) === undefined) continue;
      this.retries += 1;
      const others = this.#targets.filter((target) => target !== first);
      const problem = await this.#try(topic, random.pick(others));
      if (problem === undefined) continue;
      this.failures.push(problem);
      await delay(refusedPauseMs);
    }
  }

  /** Publishes one event to a node. Returns the reason of a failure; undefined on success. */
  async #try(topic: string, { apis }: Target): Promise<string | undefined> {
    const event = this.begin(topic);
    try {
      const outcome = await this.#options.random.pick(apis).call("publish", { topic, content: event.content });
      return this.note(event, outcome) ? undefined : JSON.stringify(outcome);
    } catch (error) {
      return String(error);
    }
  }
}
