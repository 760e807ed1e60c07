import { BrokerError, encodedBytes } from "@stele/wire";
import type { EventPayload } from "../../domain/event.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import { groupBy } from "../../lib/group-by.ts";
import type { OnTransactionSettled, PublishOutcome, PublishResult, TransactionOutcome } from "../broker.ts";
import type { Batcher } from "./batcher.ts";
import type { OnFound, OpenTopic, OpenTopics } from "./open-topics.ts";

export interface TransactionsOptions {
  readonly topics: Pick<OpenTopics, "read">;
  readonly batcher: Pick<Batcher, "addAll">;
}

/** An event of a transaction, checked except for its topic. */
export interface TransactionEvent {
  readonly name: TopicName;
  readonly payload: EventPayload;
}

interface Submitted {
  readonly events: readonly TransactionEvent[];
  readonly onSettled: OnTransactionSettled;
}

/** Publishes several events in one transaction of the chain, all or none: the registry refuses the transaction as a whole if one topic is closed. */
export class Transactions {
  readonly #options: TransactionsOptions;

  constructor(options: TransactionsOptions) {
    this.#options = options;
  }

  /**
   * As `Broker.submitAll` says. Reads each topic from the index, even a known one: somebody may have closed it since this node last read it, and the
   * registry's refusal does not say which topic is closed. @throws BrokerError 200300.
   */
  submit(events: readonly TransactionEvent[], onSettled: OnTransactionSettled): void {
    const submitted = { events, onSettled };
    const byTopic = groupBy(events, ({ name }) => name);
    const found = new Map<TopicName, OpenTopic>();
    let refusal: BrokerError | undefined;
    let unread = byTopic.size;
    for (const [name, own] of byTopic) {
      const onFound: OnFound = (topic) => {
        unread -= 1;
        if (topic instanceof BrokerError) refusal ??= topic;
        else found.set(name, topic);
        if (unread > 0) return;
        if (refusal === undefined) this.#add(submitted, found);
        else onSettled({ status: "REFUSED", error: refusal });
      };
      this.#options.topics.read(name, { bytes: bytesOf(own), onFound });
    }
  }

  #add(submitted: Submitted, topics: ReadonlyMap<TopicName, OpenTopic>): void {
    const outcomes: PublishOutcome[] = [];
    const onSettled = (outcome: PublishOutcome, index: number): void => {
      outcomes[index] = outcome;
      settled += 1;
      if (settled === events.length) submitted.onSettled(toOutcome(outcomes));
    };
    let settled = 0;
    const events = submitted.events.flatMap(({ name, payload }, index) => {
      const topic = topics.get(name);
      return topic === undefined
        ? []
        : { topic, payload, onSettled: (outcome: PublishOutcome) => onSettled(outcome, index) };
    });
    try {
      this.#options.batcher.addAll(events);
    } catch (error) {
      submitted.onSettled({ status: "REFUSED", error });
    }
  }
}

/** Bytes that the events take in a batch. */
function bytesOf(events: readonly TransactionEvent[]): number {
  return events.reduce((sum, { payload }) => sum + encodedBytes(payload), 0);
}

/** The chain commits all events or none, so a refusal of one event is the outcome of all. */
function toOutcome(outcomes: readonly PublishOutcome[]): TransactionOutcome {
  const results = outcomes.filter((one): one is PublishResult => one.status === "SUCCESS");
  if (results.length === outcomes.length) return { status: "SUCCESS", results };
  const refused = outcomes.find(({ status }) => status === "REFUSED");
  return refused?.status === "REFUSED" ? refused : { status: "TIMEOUT" };
}
