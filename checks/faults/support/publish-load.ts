import { setTimeout as delay } from "node:timers/promises";
import { type Api, apiOver } from "../../harness/apis.ts";
import { HttpClient } from "../../harness/http-client.ts";
import { PublisherRun } from "./publisher-run.ts";
import { PublishRecord } from "./publish-record.ts";

export interface PublishLoadOptions {
  readonly publishersPerTopic: number;
  /** Pads contents to this length. */
  readonly contentCharacters?: number;
  /** Prefix of the contents, to distinguish several loads. */
  readonly label?: string;
}

/** Pause of a publisher after a refusal, in milliseconds. A shorter one loads the processor with refusals while a fault lasts. */
export const refusedPauseMs = 250;
export const publishApis = ["REST POST form", "JSON-RPC", "REST GET", "REST POST JSON"] as const;

/**
 * Publishers that send one event after another. Each publisher has one topic and one API. The record of sent and acknowledged events spans all
 * brokers that the load runs on.
 */
export class PublishLoad extends PublishRecord {
  readonly #topics: readonly string[];
  readonly #options: PublishLoadOptions;
  #running: PublisherRun | undefined;

  constructor(topics: readonly string[], options: PublishLoadOptions) {
    super();
    this.#topics = topics;
    this.#options = options;
  }

  start(url: string): void {
    const http = new HttpClient(url);
    const publishers = this.#topics.flatMap((topic) =>
      Array.from({ length: this.#options.publishersPerTopic }, (_, index) => {
        const api = apiOver(http, publishApis[index % publishApis.length] ?? "JSON-RPC");
        return async (isStopping: () => boolean): Promise<void> => this.#publish(api, topic, isStopping);
      }),
    );
    this.#running = new PublisherRun([http], publishers);
  }

  /** Stops after the publishes in progress, which fail if the broker is gone. */
  async stop(): Promise<void> {
    await this.#running?.stop();
    this.#running = undefined;
  }

  /** Publishes until `stop`, or until a call throws: the connection is lost, or the answer cannot be read. */
  async #publish(api: Api, topic: string, isStopping: () => boolean): Promise<void> {
    while (!isStopping()) {
      const event = this.begin(topic, this.#options);
      const outcome = await api.call("publish", { topic, content: event.content }).catch(() => undefined);
      if (outcome === undefined) return;
      if (!this.note(event, outcome)) await delay(refusedPauseMs);
    }
  }
}
