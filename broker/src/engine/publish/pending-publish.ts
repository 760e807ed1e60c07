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

/** A publish with a key, checked except for the key. */
export interface KeyedPublish {
  readonly name: TopicName;
  readonly payload: EventPayload;
  readonly scope: string;
  readonly key: string;
  /** A session may reuse a key, and some extensions of its repeats differ. Undefined for a publish without a session. */
  readonly session: KeySession | undefined;
  /** Undefined if the publish must not open its topic. */
  readonly open?: OpenMissing | undefined;
  /** Called once, when the publish first begins to wait for a transaction. A publish that settles before is not placed. */
  readonly onPlaced?: (() => void) | undefined;
  /** If set, this request publishes nothing, and gets this answer unless an earlier request published under the key. */
  readonly refusal?: BrokerError | undefined;
}

export interface NamedPublishOptions
  extends Pick<KeyedPublish, "payload" | "session" | "open" | "onPlaced" | "refusal"> {
  /** The row that records the key. */
  readonly row: Omit<PublishKeyRow, "after" | "recordedAt">;
  readonly mayStart: (() => boolean) | undefined;
  /** When the publish came, in the clock's monotonic milliseconds. */
  readonly since: number;
  readonly logger: Logger;
  readonly onTaken: (named: NamedPublish, row: TakenKey) => void;
}

/** A publish with a key, and all callers that wait for its outcome. */
export class NamedPublish implements Claim {
  readonly #options: NamedPublishOptions;
  readonly #callers: OnSettled[];
  #row: NamedPublishOptions["row"];
  #isRecorded = false;
  #isPlaced = false;
  /** Set once the topic was found open. */
  topic: OpenTopic | undefined;
  /** Called before the callers, with their number. */
  onFinished: (callers: number) => void = () => {};

  constructor(options: NamedPublishOptions, onSettled: OnSettled) {
    this.#options = options;
    this.#row = options.row;
    this.#callers = [onSettled];
  }

  get row(): NamedPublishOptions["row"] {
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

  /** A will outlasts its connection, and so its session's epoch. */
  get isOfWill(): boolean {
    const { session } = this.#options;
    return session !== undefined && session.epoch === undefined;
  }

  get open(): NamedPublishOptions["open"] {
    return this.#options.open;
  }

  get refusal(): NamedPublishOptions["refusal"] {
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

  /** Whether this request recorded the key, or continues with its row. */
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

/** Whether an error says that nothing was published and nothing will be. After any other error, a repeat asks the ledger. */
export function isKeyFree(error: unknown): boolean {
  return surelyUnpublished.some((name) => isBrokerError(error, name));
}

const surelyUnpublished = [
  "topicClosed",
  "topicNotExist",
  "writerRefused",
  "contentTooLong",
  "transactionFailed",
  "chainUnreachable",
] as const;
