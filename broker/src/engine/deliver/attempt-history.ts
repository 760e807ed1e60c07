import type { EventId } from "@stele/wire";
import type { SubscriptionId } from "../../domain/subscription.ts";
import type { AttemptAnswer, AttemptOutcome, Notification } from "../../ports/sink.ts";

/** Attempts that a node remembers of one subscription; consecutive accepted ones count as one. */
export const attemptsPerSubscriptionMax = 10;
/** Memory for the attempts of all subscriptions of a node, in bytes. Beyond it, the subscriptions whose last new record is oldest lose theirs. */
export const historyBytesMax = 32 * 1024 * 1024;
/** Bytes to keep when {@link historyBytesMax} is reached. Deleting one by one would be slow: a Map steps over all keys deleted since it last grew. */
const historyBytesLeft = 30 * 1024 * 1024;
/** Bytes that a node remembers of the answer to one attempt. */
export const excerptBytesMax = 1_024;
/** Memory of an attempt without its texts, if it is the only one of its subscription (measured by `npm run bench -- --only admin`). */
const recordBytes = 768;
/** Largest memory of a character of a text. */
const bytesPerCharacter = 2;

/** One attempt, or the newest of several consecutive accepted ones. */
export interface AttemptRecord {
  /** When it ended, in milliseconds since the epoch. */
  readonly at: number;
  readonly durationMs: number;
  readonly outcome: "accepted" | "failed" | "gone";
  readonly eventId: EventId;
  /** Number of consecutive accepted attempts; 1 for a failed attempt. */
  readonly count: number;
  /** HTTP status of the answer; undefined without one. */
  readonly status: number | undefined;
  /** Why the attempt failed; undefined if it was accepted. */
  readonly reason: string | undefined;
  /** How the answer to a failed attempt began. */
  readonly excerpt: string | undefined;
}

/** How an attempt ended. */
export interface EndedAttempt {
  readonly outcome: Exclude<AttemptOutcome, { status: "withheld" }>;
  readonly answer: AttemptAnswer | undefined;
  readonly at: number;
  readonly durationMs: number;
}

type Writable<Row> = { -readonly [Name in keyof Row]: Row[Name] };

/** The newest attempts of the subscriptions that this node delivers; only in memory, at most {@link historyBytesMax}. */
export class AttemptHistory {
  readonly #records = new Map<SubscriptionId, Writable<AttemptRecord>[]>();
  #bytes = 0;

  /** Attempts of a subscription, the newest first. */
  of(id: SubscriptionId): readonly AttemptRecord[] {
    return this.#records.get(id)?.toReversed() ?? [];
  }

  /** The newest attempt of a subscription. */
  lastOf(id: SubscriptionId): AttemptRecord | undefined {
    return this.#records.get(id)?.at(-1);
  }

  /** Records an attempt. An accepted attempt replaces the accepted one right before it, so a working receiver costs no memory per event. */
  note({ subscription: { id }, eventId }: Notification, { outcome, answer, at, durationMs }: EndedAttempt): void {
    const own = this.#records.get(id);
    const last = own?.at(-1);
    const status = answer?.status;
    if (outcome.status === "accepted" && last?.outcome === "accepted") {
      Object.assign(last, { at, durationMs, eventId, status, count: last.count + 1 });
      return;
    }
    const isAccepted = outcome.status === "accepted";
    this.#add(id, {
      at,
      durationMs,
      outcome: outcome.status,
      eventId,
      count: 1,
      status,
      reason: isAccepted ? undefined : outcome.reason,
      excerpt: isAccepted || answer === undefined ? undefined : toExcerpt(answer.body),
    });
  }

  /** Call it when this node stops delivering the subscription: another node makes its attempts from now on. */
  forget(id: SubscriptionId): void {
    for (const record of this.#records.get(id) ?? []) this.#account(record, -1);
    this.#records.delete(id);
  }

  #add(id: SubscriptionId, record: Writable<AttemptRecord>): void {
    const own = this.#records.get(id) ?? [];
    own.push(record);
    this.#account(record, 1);
    if (own.length > attemptsPerSubscriptionMax) this.#account(own.shift(), -1);
    // Moves the subscription to the end: `#shrink` drops from the front.
    this.#records.delete(id);
    this.#records.set(id, own);
    this.#shrink();
  }

  #shrink(): void {
    if (this.#bytes <= historyBytesMax) return;
    for (const id of this.#records.keys()) {
      if (this.#bytes <= historyBytesLeft) return;
      this.forget(id);
    }
  }

  #account(record: AttemptRecord | undefined, sign: 1 | -1): void {
    if (record !== undefined) this.#bytes += sign * memoryOf(record);
  }
}

function memoryOf({ excerpt = "", reason = "" }: AttemptRecord): number {
  return recordBytes + bytesPerCharacter * (excerpt.length + reason.length);
}

const utf8 = new TextDecoder();

/** How an answer began; undefined for an empty one. */
export function toExcerpt(body: Uint8Array): string | undefined {
  return body.length === 0 ? undefined : utf8.decode(body.subarray(0, excerptBytesMax));
}
