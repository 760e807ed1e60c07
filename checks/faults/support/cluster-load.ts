import { setTimeout as delay } from "node:timers/promises";
import { type Door, openDoor } from "../../harness/doors.ts";
import { HttpClient } from "../../harness/http-client.ts";
import type { Random } from "../../harness/random.ts";
import { publishDoors, refusedPauseMs } from "./publish-load.ts";
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
  #running:
    | { readonly entrances: readonly Entrance[]; readonly ended: Promise<unknown>; isStopping: boolean }
    | undefined;

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
    const run = { entrances, isStopping: false, ended: Promise.resolve() as Promise<unknown> };
    const publishers = topics.flatMap((topic) =>
      Array.from({ length: publishersPerTopic }, () => this.#publish(topic, run)),
    );
    run.ended = Promise.all(publishers);
    this.#running = run;
  }

  /** Lets the publishes under way end. */
  async stop(): Promise<void> {
    const run = this.#running;
    if (run === undefined) return;
    run.isStopping = true;
    await run.ended;
    for (const { http } of run.entrances) await http[Symbol.asyncDispose]();
    this.#running = undefined;
  }

  /** Publishes many events to one topic at once, beside the others; while the publishers run. */
  async burst(topic: string, count: number): Promise<void> {
    const entrances = this.#running?.entrances ?? [];
    const tries = Array.from({ length: count }, () => this.#try(topic, this.#options.random.pick(entrances)));
    await Promise.all(tries);
  }

  async #publish(topic: string, run: { readonly entrances: readonly Entrance[]; readonly isStopping: boolean }) {
    const { random } = this.#options;
    while (!run.isStopping) {
      const first = random.pick(run.entrances);
      if ((await this.#try(topic, first)) === undefined) continue;
      this.retries += 1;
      const others = run.entrances.filter((entrance) => entrance !== first);
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
