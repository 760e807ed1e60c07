import { type BrokerError, isBrokerError } from "@stele/wire";
import type { EventPayload } from "../../domain/event.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { Logger } from "../../lib/logger.ts";
import type { PublishKeyRow, TakenKey } from "../../ports/publish-keys.ts";
import type { OnSettled, PublishOutcome } from "../broker.ts";
import type { KeySession } from "../key-session.ts";
import { answerAll } from "./answer-all.ts";
import { type Claim, fenceOf } from "./claim.ts";
import type { OpenMissing, OpenTopic } from "./open-topics.ts";
import { hasNotStarted } from "./refusals.ts";

/** A publish with a key. Its topic name, content and extensions have been checked, its key has not. */
export interface KeyedPublish {
  readonly name: TopicName;
  readonly payload: EventPayload;
  readonly scope: string;
  readonly key: string;
  /** The session that owns the key: it may reuse the key for another publish, and a repeat's extensions may differ. Undefined if the caller owns it. */
  readonly session: KeySession | undefined;
  /** Undefined if the publish must not open its topic. */
  readonly open?: OpenMissing | undefined;
  /** Called once, when the publish first begins to wait for a transaction; never if the publish settles earlier. */
  readonly onPlaced?: (() => void) | undefined;
  /** If set, this request publishes nothing. Its answer is the event of an earlier request with the key, or this error if there is none. */
  readonly refusal?: BrokerError | undefined;
}

export interface PendingPublishOptions
  extends Pick<KeyedPublish, "payload" | "session" | "open" | "onPlaced" | "refusal"> {
  /** The row that records the key. */
  readonly row: Omit<PublishKeyRow, "after" | "recordedAt">;
  readonly mayStart: (() => boolean) | undefined;
  /** When the publish came, in milliseconds of the monotonic clock. */
  readonly since: number;
  readonly logger: Logger;
  readonly onTaken: (pending: PendingPublish, row: TakenKey) => void;
}

/** A publish with a key that has not settled yet, and all callers that wait for its outcome. */
export class PendingPublish implements Claim {
  readonly #options: PendingPublishOptions;
  readonly #callers: OnSettled[];
  #row: PendingPublishOptions["row"];
  #isRecorded = false;
  #isPlaced = false;
  /** Set once the topic is found: it is open, or this publish opens it. */
  topic: OpenTopic | undefined;
  /** Called with the number of callers, before they get the outcome. */
  onFinished: (callers: number) => void = () => {};

  constructor(options: PendingPublishOptions, onSettled: OnSettled) {
    this.#options = options;
    this.#row = options.row;
    this.#callers = [onSettled];
  }

  get row(): PendingPublishOptions["row"] {
    return this.#row;
  }

  get mayStart(): (() => boolean) | undefined {
    return this.#options.mayStart;
  }

  get order(): Claim["order"] {
    const { session, since } = this.#options;
    return session && { session: session.id, since };
  }

  get isOfSession(): boolean {
    return this.#options.session !== undefined;
  }

  /** A will is published after its connection has ended, so its session has no epoch. */
  get isOfWill(): boolean {
    const { session } = this.#options;
    return session !== undefined && session.epoch === undefined;
  }

  get open(): PendingPublishOptions["open"] {
    return this.#options.open;
  }

  get refusal(): PendingPublishOptions["refusal"] {
    return this.#options.refusal;
  }

  /** Call it each time the publish begins to wait for a transaction. Only the first time counts. */
  placed(): void {
    if (this.#isPlaced) return;
    this.#isPlaced = true;
    this.#options.onPlaced?.();
  }

  get payload(): EventPayload {
    return this.#options.payload;
  }

  get digest(): string {
    return this.#row.digest;
  }

  /** Whether the store has the key's row: this request recorded it, or continues with the row of an earlier request. */
  get isRecorded(): boolean {
    return this.#isRecorded;
  }

  get unrecorded(): Claim["unrecorded"] {
    const { session } = this.#options;
    return this.#isRecorded ? undefined : { ...this.#row, fence: fenceOf(session), mayReplace: session !== undefined };
  }

  onRecorded(): void {
    this.#isRecorded = true;
  }

  onTaken(row: TakenKey): void {
    this.#options.onTaken(this, row);
  }

  onFailed(error: unknown): void {
    this.finish({ status: "REFUSED", error });
  }

  /** Continues with a row that an earlier request recorded. */
  takeRow(row: PublishKeyRow): void {
    this.#row = row;
    this.#isRecorded = true;
  }

  join(onSettled: OnSettled): void {
    this.#callers.push(onSettled);
  }

  /** Never throws. */
  finish(outcome: PublishOutcome): void {
    this.onFinished(this.#callers.length);
    answerAll(this.#callers, (onSettled) => onSettled(outcome), this.#options.logger);
  }
}

/** Whether the error means that nothing was published and nothing will be, so that the key can be freed. After any other error, a repeat asks the ledger. */
export function isSurelyUnpublished(error: unknown): boolean {
  return hasNotStarted(error) || unpublishedErrors.some((name) => isBrokerError(error, name));
}

const unpublishedErrors = [
  "topicClosed",
  "topicNotExist",
  "writerRefused",
  "contentTooLong",
  "transactionFailed",
  "chainUnreachable",
] as const;
