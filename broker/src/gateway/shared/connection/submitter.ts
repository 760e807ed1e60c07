import { BrokerError } from "@stele/wire";
import type { Caller } from "../../../engine/access/caller.ts";
import type { Broker, OnSettled, OnTransactionSettled, PublishCall, TopicCall } from "../../../engine/broker.ts";
import { createDeferred, type Deferred } from "../../../lib/deferred.ts";
import { publishBytes } from "./publish-bytes.ts";
import type { TopicOpener } from "./topic-opener.ts";

export interface SubmitterOptions {
  readonly broker: Pick<Broker, "submit" | "submitAll" | "whenRoom">;
  readonly caller: Caller;
  readonly opener: TopicOpener;
}

/** Publishes that are submitted together. */
interface Order {
  readonly calls: readonly PublishCall[];
  readonly submit: () => void;
  /** It was not submitted, or the submission was refused at once. */
  readonly refuse: (error: unknown) => void;
}

/** Submits the publishes of one connection in their order, each once its topic is open and its group has room. */
export class Submitter {
  readonly #options: SubmitterOptions;
  /** What waits for its topics or for room. Only this refers to it, so that it goes with its connection. */
  #order: Order | undefined;
  #orderBytes = 0;
  #submitted: Deferred<void> | undefined;

  constructor(options: SubmitterOptions) {
    this.#options = options;
  }

  /** Bytes of what waits. */
  get waitingBytes(): number {
    return this.#order === undefined ? 0 : this.#orderBytes;
  }

  /**
   * A promise where the topic has to be opened first, or the group is full: until it settles, nothing else may be submitted, so that the order
   * stays. It never rejects; `onSettled` hears of every failure.
   */
  submit(call: PublishCall, onSettled: OnSettled): Promise<void> | undefined {
    const { broker, caller } = this.#options;
    return this.#begin({
      calls: [call],
      submit: () => broker.submit(caller, call, onSettled),
      refuse: (error) => onSettled({ status: "REFUSED", error }),
    });
  }

  /** Publishes all together once their topics are open and their group has room. Answers when that has settled; it never rejects. */
  submitAll(calls: readonly PublishCall[], onSettled: OnTransactionSettled): Promise<void> {
    const { broker, caller } = this.#options;
    const { promise, resolve } = createDeferred<void>();
    const settle: OnTransactionSettled = (outcome) => {
      onSettled(outcome);
      resolve();
    };
    void this.#begin({
      calls,
      submit: () => broker.submitAll(caller, calls, settle),
      refuse: (error) => settle({ status: "REFUSED", error }),
    });
    return promise;
  }

  /** The connection has ended: what waits is refused. */
  close(): void {
    this.#refuse(new BrokerError("busy", { details: "the connection ended before the publish was submitted" }));
  }

  #begin(order: Order): Promise<void> | undefined {
    const { calls } = order;
    this.#order = order;
    if (calls.every((call) => this.#options.opener.isKnown(call))) this.#submitWithRoom();
    else void this.#open(calls.map(({ topic, groupId }) => ({ topic, groupId })));
    if (this.#order === undefined) return undefined;
    this.#orderBytes = calls.reduce((sum, call) => sum + publishBytes(call), 0);
    this.#submitted = createDeferred();
    return this.#submitted.promise;
  }

  async #open(topics: readonly TopicCall[]): Promise<void> {
    const { opener } = this.#options;
    try {
      for (const topic of topics) if (!opener.isKnown(topic)) await opener.ensure(topic);
    } catch (error) {
      this.#refuse(error);
    }
    this.#submitWithRoom();
  }

  /** Asks again whenever there may be room: the client waits, for it cannot be told to come later. */
  #submitWithRoom(): void {
    const order = this.#order;
    if (order === undefined || !this.#hasRoom(order)) return;
    this.#order = undefined;
    try {
      order.submit();
    } catch (error) {
      order.refuse(error);
    }
    this.#submitted?.resolve();
  }

  #hasRoom({ calls: [first] }: Order): boolean {
    const { broker, caller } = this.#options;
    try {
      return broker.whenRoom(caller, first?.groupId, () => this.#submitWithRoom());
    } catch {
      return true; // the submission says why
    }
  }

  #refuse(error: unknown): void {
    const order = this.#order;
    this.#order = undefined;
    order?.refuse(error);
    this.#submitted?.resolve();
  }
}
