import { setTimeout as delay } from "node:timers/promises";
import { type Door, openDoor } from "../../harness/doors.ts";
import { HttpClient } from "../../harness/http-client.ts";
import type { Random } from "../../harness/random.ts";
import { publishDoors, refusedPauseMs } from "./publish-load.ts";
import { PublisherRun } from "./publisher-run.ts";
import { PublishRecord } from "./publish-record.ts";

export interface ClusterLoadOptions {
  readonly topics: readonly string[];
  readonly publishersPerTopic: number;
  /** Of the nodes, whether they run or not. */
  readonly urls: readonly string[];
  readonly random: Random;
}

/** Publishers that wait for ever for a node that is frozen would soon be all of them. */
const patienceMs = 6000;

interface Entrance {
  readonly http: HttpClient;
  readonly doors: readonly Door[];
}

/**
 * Publishers, each of which sends one event after another to a node that is picked at random. An event that fails there, or whose
 * connection breaks, is sent once again, under another content, to another node.
 */
export class ClusterLoad extends PublishRecord {
  /** What came of the second tries that failed too. */
  readonly failures: string[] = [];
  /** How many events were tried a second time. */
  retries = 0;
  readonly #options: ClusterLoadOptions;
  #entrances: readonly Entrance[] = [];
  #running: PublisherRun | undefined;

  constructor(options: ClusterLoadOptions) {
    super();
    this.#options = options;
  }

  start(): void {
    const { topics, publishersPerTopic, urls } = this.#options;
    const entrances = urls.map((url) => {
      const http = new HttpClient(url, { timeoutMs: patienceMs });
      return { http, doors: publishDoors.map((name) => openDoor(http, name)) };
    });
    const publishers = topics.flatMap((topic) =>
      Array.from(
        { length: publishersPerTopic },
        () =>
          async (isStopping: () => boolean): Promise<void> =>
            this.#publish(topic, isStopping),
      ),
    );
    this.#entrances = entrances;
    this.#running = new PublisherRun(
      entrances.map(({ http }) => http),
      publishers,
    );
  }

  /** Lets the publishes under way end. */
  async stop(): Promise<void> {
    await this.#running?.stop();
    this.#running = undefined;
  }

  /** Publishes many events to one topic at once, beside the others; while the publishers run. */
  async burst(topic: string, count: number): Promise<void> {
    const { random } = this.#options;
    const tries = Array.from({ length: count }, () => this.#try(topic, random.pick(this.#entrances)));
    await Promise.all(tries);
  }

  async #publish(topic: string, isStopping: () => boolean): Promise<void> {
    const { random } = this.#options;
    while (!isStopping()) {
      const first = random.pick(this.#entrances);
      if ((await this.#try(topic, first)) === undefined) continue;
      this.retries += 1;
      const others = this.#entrances.filter((entrance) => entrance !== first);
      const problem = await this.#try(topic, random.pick(others));
      if (problem === undefined) continue;
      this.failures.push(problem);
      await delay(refusedPauseMs);
    }
  }

  /** Undefined when the publish succeeded, else why it did not. */
  async #try(topic: string, { doors }: Entrance): Promise<string | undefined> {
    const event = this.begin(topic);
    try {
      const outcome = await this.#options.random.pick(doors).call("publish", event);
      return this.note(event, outcome) ? undefined : JSON.stringify(outcome);
    } catch (error) {
      return String(error);
    }
  }
}
