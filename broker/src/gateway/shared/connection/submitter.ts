import { BrokerError } from "@stele/wire";
import type { Caller } from "../../../engine/access/caller.ts";
import type {
  Broker,
  OnSettled,
  OnTransactionSettled,
  Placement,
  PublishCall,
  TopicCall,
} from "../../../engine/broker.ts";
import { createDeferred, type Deferred } from "../../../lib/deferred.ts";
import { publishBytes } from "./publish-bytes.ts";
import type { TopicOpener } from "./topic-opener.ts";

export interface SubmitterOptions {
  readonly broker: Pick<Broker, "submit" | "submitAll" | "whenRoom">;
  readonly caller: Caller;
  readonly opener: TopicOpener;
}

/** Publishes that are submitted together. */
interface Submission {
  readonly calls: readonly PublishCall[];
  readonly submit: () => void;
  /** Called if the publishes were not submitted, or if the submission threw. */
  readonly refuse: (error: unknown) => void;
}

/** Submits the publishes of one connection in order. Submits each once its group has room and the earlier publish has its place in the group's order. */
export class Submitter {
  readonly #options: SubmitterOptions;
  /** The submission that waits for its topics or for room. Nothing else refers to it, so it is freed with its connection. */
  #submission: Submission | undefined;
  #orderBytes = 0;
  #submitted: Deferred<void> | undefined;
  #count = 0;
  /** Number of the publish that was submitted and has no place yet; undefined for none. */
  #placing: number | undefined;
  /** Whether the publish `#placing` opens its topic: then the others wait until it has settled. */
  #isOpening = false;
  #isClosed = false;
  readonly #placement: Placement;

  constructor(options: SubmitterOptions) {
    this.#options = options;
    const { opener } = options;
    const onOpening = (): void => {
      opener.count();
      this.#isOpening = true;
    };
    const onPlaced = (): void => (this.#isOpening ? undefined : this.#placed());
    this.#placement = { onOpening: opener.isAutomatic ? onOpening : undefined, onPlaced };
  }

  /** Bytes of the publishes that wait to be submitted, or to get their place. */
  get waitingBytes(): number {
    return this.#isWaiting ? this.#orderBytes : 0;
  }

  get #isWaiting(): boolean {
    return this.#submission !== undefined || this.#placing !== undefined;
  }

  /**
   * Submits a publish. Returns a promise if the group's queue is full, or if the publish has no place yet because its topic is unknown. Submit nothing else
   * until the promise resolves, so that the publishes stay in order. It never rejects: `onSettled` gets every failure.
   */
  submit(call: PublishCall, onSettled: OnSettled): Promise<void> | undefined {
    const submission = {
      calls: [call],
      submit: () => this.#submitOne(call, onSettled),
      refuse: (error: unknown) => onSettled({ status: "REFUSED", error }),
    };
    this.#submission = submission;
    this.#submitWithRoom();
    return this.#wait(submission);
  }

  /** Publishes all calls together once their topics are open and their group has room. Resolves when they have settled; never rejects. */
  submitAll(calls: readonly PublishCall[], onSettled: OnTransactionSettled): Promise<void> {
    const { broker, caller } = this.#options;
    const { promise, resolve } = createDeferred<void>();
    const settle: OnTransactionSettled = (outcome) => {
      onSettled(outcome);
      resolve();
    };
    const submission = {
      calls,
      submit: () => broker.submitAll(caller, calls, settle),
      refuse: (error: unknown) => settle({ status: "REFUSED", error }),
    };
    this.#submission = submission;
    // Without the contents: an opening in progress outlasts the connection.
    void this.#open(new Map(calls.map(({ topic, groupId }) => [topic, { topic, groupId }])));
    void this.#wait(submission);
    return promise;
  }

  /** Call it when the connection has ended. Refuses the publishes that wait to be submitted. */
  close(): void {
    this.#isClosed = true;
    if (this.#isWaiting) this.#refuse(connectionEnded());
  }

  #submitOne(call: PublishCall, onSettled: OnSettled): void {
    const { broker, caller } = this.#options;
    const number = ++this.#count;
    this.#placing = number;
    this.#isOpening = false;
    const settle: OnSettled = (outcome) => {
      onSettled(outcome);
      if (this.#placing === number) this.#placed();
    };
    // The new field comes first. After a copy (`{ ...call, placement }`), V8 would make a hidden class for each object, and read every field slowly.
    broker.submit(caller, { placement: this.#placement, ...call }, settle);
  }

  /** Lets the next publish be submitted. */
  #placed(): void {
    this.#placing = undefined;
    this.#submitted?.resolve();
  }

  #wait({ calls }: Submission): Promise<void> | undefined {
    if (!this.#isWaiting) return undefined;
    this.#orderBytes = calls.reduce((sum, call) => sum + publishBytes(call), 0);
    this.#submitted = createDeferred();
    return this.#submitted.promise;
  }

  /** Opens topics one after the other, until the connection has ended. */
  async #open(topics: ReadonlyMap<string, TopicCall>): Promise<void> {
    try {
      for (const topic of topics.values()) if (!this.#isClosed) await this.#options.opener.ensure(topic);
    } catch (error) {
      this.#refuse(error);
    }
    this.#submitWithRoom();
  }

  /** Submits what waits once there is room: the protocols cannot ask a client to come back later. */
  #submitWithRoom(): void {
    const submission = this.#submission;
    if (submission === undefined || !this.#hasRoom(submission)) return;
    this.#submission = undefined;
    try {
      submission.submit();
    } catch (error) {
      this.#placing = undefined;
      submission.refuse(error);
    }
    if (!this.#isWaiting) this.#submitted?.resolve();
  }

  #hasRoom({ calls }: Submission): boolean {
    const { broker, caller } = this.#options;
    try {
      return broker.whenRoom(caller, calls, () => this.#submitWithRoom());
    } catch {
      return true; // the submission reports the error
    }
  }

  #refuse(error: unknown): void {
    const submission = this.#submission;
    this.#submission = undefined;
    submission?.refuse(error);
    this.#submitted?.resolve();
  }
}

/** The refusal of a publish that was not submitted while its connection lasted. */
export function connectionEnded(): BrokerError {
  return new BrokerError("busy", { details: "the connection ended before the publish was submitted" });
}
