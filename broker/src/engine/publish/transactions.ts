import { BrokerError, encodedBytes, quote } from "@stele/wire";
import type { EventPayload } from "../../domain/event.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import { createDeferred, type Deferred } from "../../lib/deferred.ts";
import type { Logger } from "../../lib/logger.ts";
import type { OnTransactionSettled, PublishOutcome, PublishResult, TransactionOutcome } from "../broker.ts";
import type { Batcher } from "./batcher.ts";
import type { OnFound, OpenTopic, OpenTopics } from "./open-topics.ts";

export interface TransactionsOptions {
  readonly topics: Pick<OpenTopics, "read">;
  readonly batcher: Pick<Batcher, "addAll">;
  readonly logger: Logger;
}

/** An event of a transaction, checked except for its topic. */
export interface TransactionEvent {
  readonly name: TopicName;
  readonly payload: EventPayload;
}

interface Submitted {
  readonly events: readonly TransactionEvent[];
  readonly names: ReadonlySet<TopicName>;
  readonly onSettled: OnTransactionSettled;
}

/**
 * Publishes several events in one transaction of the chain, all or none. The registry refuses the transaction as a whole if one topic is closed. Registries
 * of an earlier version decide about each topic separately. Therefore the broker first reads each topic from the index, and does not close a topic while a
 * transaction with it is in progress.
 */
export class Transactions {
  readonly #options: TransactionsOptions;
  readonly #inProgress = new Map<TopicName, number>();
  /** Topics that are being closed, each with the calls that wait until no transaction with the topic is in progress. */
  readonly #closing = new Map<TopicName, Deferred<void>[]>();

  constructor(options: TransactionsOptions) {
    this.#options = options;
  }

  /** As `Broker.submitAll` says. @throws BrokerError 100112, 200300. */
  submit(events: readonly TransactionEvent[], onSettled: OnTransactionSettled): void {
    const names = new Set(events.map(({ name }) => name));
    for (const name of names) {
      if (this.#closing.has(name)) throw new BrokerError("topicClosed", { details: quote(name) });
    }
    const submitted = { events, names, onSettled };
    this.#count(names, 1);
    try {
      this.#read(submitted);
    } catch (error) {
      this.#count(names, -1);
      throw error;
    }
  }

  /** Runs `close` while no transaction with the topic is in progress, and refuses new ones meanwhile. */
  async closing<T>(name: TopicName, close: () => Promise<T>): Promise<T> {
    const idle = createDeferred<void>();
    this.#closing.set(name, [...(this.#closing.get(name) ?? []), idle]);
    if (!this.#inProgress.has(name)) idle.resolve();
    try {
      await idle.promise;
      return await close();
    } finally {
      const others = (this.#closing.get(name) ?? []).filter((one) => one !== idle);
      if (others.length === 0) this.#closing.delete(name);
      else this.#closing.set(name, others);
    }
  }

  /** Reads each topic from the index, even a known one: somebody may have closed it since this node last read it. */
  #read(submitted: Submitted): void {
    const found = new Map<TopicName, OpenTopic>();
    let refusal: BrokerError | undefined;
    let unread = submitted.names.size;
    for (const name of submitted.names) {
      const onFound: OnFound = (topic) => {
        unread -= 1;
        if (topic instanceof BrokerError) refusal ??= topic;
        else found.set(name, topic);
        if (unread > 0) return;
        if (refusal === undefined) this.#add(submitted, found);
        else this.#settle(submitted, { status: "REFUSED", error: refusal });
      };
      this.#options.topics.read(name, { bytes: bytesOf(submitted, name), onFound });
    }
  }

  #add(submitted: Submitted, topics: ReadonlyMap<TopicName, OpenTopic>): void {
    const { batcher, logger } = this.#options;
    const outcomes: PublishOutcome[] = [];
    const onSettled = (outcome: PublishOutcome, index: number): void => {
      outcomes[index] = outcome;
      settled += 1;
      if (settled === events.length) this.#settle(submitted, toOutcome(outcomes, logger));
    };
    let settled = 0;
    const events = submitted.events.flatMap(({ name, payload }, index) => {
      const topic = topics.get(name);
      return topic === undefined
        ? []
        : { topic, payload, onSettled: (outcome: PublishOutcome) => onSettled(outcome, index) };
    });
    try {
      batcher.addAll(events);
    } catch (error) {
      this.#settle(submitted, { status: "REFUSED", error });
    }
  }

  #settle({ names, onSettled }: Submitted, outcome: TransactionOutcome): void {
    this.#count(names, -1);
    onSettled(outcome);
  }

  #count(names: ReadonlySet<TopicName>, by: 1 | -1): void {
    for (const name of names) {
      const count = (this.#inProgress.get(name) ?? 0) + by;
      if (count > 0) {
        this.#inProgress.set(name, count);
        continue;
      }
      this.#inProgress.delete(name);
      for (const idle of this.#closing.get(name) ?? []) idle.resolve();
    }
  }
}

/** Bytes that the topic's events take in a batch. */
function bytesOf({ events }: Submitted, topic: TopicName): number {
  const own = events.filter(({ name }) => name === topic);
  return own.reduce((sum, { payload }) => sum + encodedBytes(payload), 0);
}

/** Another node, or another account, may close a topic after it was read: then a registry of an earlier version commits only a part. */
function toOutcome(outcomes: readonly PublishOutcome[], logger: Logger): TransactionOutcome {
  const results = outcomes.filter((one): one is PublishResult => one.status === "SUCCESS");
  if (results.length === outcomes.length) return { status: "SUCCESS", results };
  const refused = outcomes.find(({ status }) => status === "REFUSED");
  if (refused?.status !== "REFUSED") return { status: "TIMEOUT" };
  if (results.length === 0) return refused;
  const details = `${results.length} of ${outcomes.length} events were published: another node closed a topic meanwhile`;
  logger.error("transaction committed in part", { details, eventIds: results.map(({ eventId }) => eventId) });
  return { status: "REFUSED", error: new BrokerError("transactionFailed", { details, cause: refused.error }) };
}
