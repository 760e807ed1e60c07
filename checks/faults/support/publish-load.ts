import { setTimeout as delay } from "node:timers/promises";
import { type Door, type Outcome, openDoor } from "../../harness/doors.ts";
import { HttpClient } from "../../harness/http-client.ts";

/** An event that a publisher sent. Times are of `performance.now()`. */
export interface SentEvent {
  readonly topic: string;
  /** No two events of a test have the same. */
  readonly content: string;
  readonly sentAt: number;
}

/** An event whose publish was answered with SUCCESS. */
export interface AcknowledgedEvent extends SentEvent {
  readonly eventId: string;
  readonly acknowledgedAt: number;
}

export interface PublishLoadOptions {
  readonly publishersPerTopic: number;
  /** Contents are filled up to this length. */
  readonly contentCharacters?: number;
  /** Tells this load's contents from another's. */
  readonly label?: string;
}

const transactionTimeout = 200_201;
/** What a publisher that was refused waits before the next event. */
const refusedPauseMs = 20;
const doorNames = ["REST POST form", "JSON-RPC", "REST GET", "REST POST JSON"] as const;

/**
 * Publishers, each of which sends one event after another to one topic, through one of the doors. What is sent and what is acknowledged
 * is kept over every broker that the load is started on.
 */
export class PublishLoad {
  readonly sent = new Map<string, SentEvent>();
  readonly acknowledged = new Map<string, AcknowledgedEvent>();
  /** Answers that were neither SUCCESS nor a lost connection. */
  readonly refusals: string[] = [];
  /** By content, the code of each publish that was refused: its event was not published. */
  readonly refused = new Map<string, number>();
  /** Contents whose publish was answered TIMEOUT: their events may come, or may not. */
  readonly undecided = new Set<string>();
  readonly #topics: readonly string[];
  readonly #options: PublishLoadOptions;
  #running: { readonly http: HttpClient; readonly ended: Promise<unknown>; isStopping: boolean } | undefined;

  constructor(topics: readonly string[], options: PublishLoadOptions) {
    this.#topics = topics;
    this.#options = options;
  }

  start(url: string): void {
    const http = new HttpClient(url);
    const run = { http, isStopping: false, ended: Promise.resolve() as Promise<unknown> };
    const publishers = this.#topics.flatMap((topic) =>
      Array.from({ length: this.#options.publishersPerTopic }, (_, index) => {
        const door = openDoor(http, doorNames[index % doorNames.length] ?? "JSON-RPC");
        return this.#publish(door, topic, () => run.isStopping);
      }),
    );
    run.ended = Promise.all(publishers);
    this.#running = run;
  }

  /** Lets the publishes under way end, or break when the broker is gone. */
  async stop(): Promise<void> {
    const run = this.#running;
    if (run === undefined) return;
    run.isStopping = true;
    await run.ended;
    await run.http[Symbol.asyncDispose]();
    this.#running = undefined;
  }

  /** Until told to stop, or the connection is lost. */
  async #publish(door: Door, topic: string, isStopping: () => boolean): Promise<void> {
    while (!isStopping()) {
      const { label = "", contentCharacters = 0 } = this.#options;
      const content = `${label}${topic} & ${this.sent.size} `.padEnd(contentCharacters, "-");
      const event = { topic, content, sentAt: performance.now() };
      this.sent.set(event.content, event);
      const outcome = await door.call("publish", event).catch(() => undefined);
      if (outcome === undefined) return;
      if (!this.#note(event, outcome)) await delay(refusedPauseMs);
    }
  }

  /** Answers whether the publish succeeded. */
  #note(event: SentEvent, outcome: Outcome): boolean {
    const result = outcome.isGood ? (outcome.value as { eventId: string; status: string }) : undefined; // A SendResult.
    if (result?.status !== "SUCCESS") {
      this.refusals.push(JSON.stringify(outcome));
      if (outcome.isGood || outcome.code === transactionTimeout) this.undecided.add(event.content);
      else this.refused.set(event.content, outcome.code);
      return false;
    }
    const { eventId } = result;
    if (this.acknowledged.has(eventId)) this.refusals.push(`${eventId} was given to two events`);
    this.acknowledged.set(eventId, { ...event, eventId, acknowledgedAt: performance.now() });
    return true;
  }
}
