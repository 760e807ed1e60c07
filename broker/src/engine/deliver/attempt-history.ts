import type { EventId } from "@stele/wire";
import type { SubscriptionId } from "../../domain/subscription.ts";
import type { AttemptAnswer, AttemptOutcome, Notification } from "../../ports/sink.ts";

/** Attempts that are remembered of one subscription; accepted ones in a row count as one. */
export const attemptsPerSubscriptionMax = 10;
/** Attempts that are remembered of all subscriptions of a node, each about 200 bytes. Those of the subscription that failed least recently go first. */
export const attemptsRememberedMax = 50_000;
/** Bytes of one answer that are remembered. */
export const excerptBytesMax = 1_024;
/** Characters of all answers that are remembered, each up to 2 bytes. */
export const excerptCharactersMax = 4 * 1024 * 1024;

/** One attempt, or several accepted ones in a row, of which it is the newest. */
export interface AttemptRecord {
  /** When it ended, in milliseconds since the epoch. */
  readonly at: number;
  readonly durationMs: number;
  readonly outcome: "accepted" | "failed" | "gone";
  readonly eventId: EventId;
  /** Attempts in a row that it stands for. */
  readonly count: number;
  /** Of HTTP; undefined without an answer. */
  readonly status: number | undefined;
  /** Why it failed. */
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

/** The newest attempts of the subscriptions that this node delivers, in memory: about 18 MiB at most. */
export class AttemptHistory {
  readonly #records = new Map<SubscriptionId, Writable<AttemptRecord>[]>();
  #count = 0;
  #characters = 0;

  /** Attempts of a subscription, the newest first. */
  of(id: SubscriptionId): readonly AttemptRecord[] {
    return this.#records.get(id)?.toReversed() ?? [];
  }

  /** A receiver that works costs no memory per event: its newest attempt replaces the one before. */
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

  #add(id: SubscriptionId, record: Writable<AttemptRecord>): void {
    const own = this.#records.get(id) ?? [];
    own.push(record);
    this.#account(record, 1);
    if (own.length > attemptsPerSubscriptionMax) this.#account(own.shift(), -1);
    // The newest failure comes last.
    this.#records.delete(id);
    this.#records.set(id, own);
    this.#shrink();
  }

  #shrink(): void {
    for (const [id, records] of this.#records) {
      if (this.#count <= attemptsRememberedMax && this.#characters <= excerptCharactersMax) return;
      for (const record of records) this.#account(record, -1);
      this.#records.delete(id);
    }
  }

  #account(record: AttemptRecord | undefined, sign: 1 | -1): void {
    if (record === undefined) return;
    this.#count += sign;
    this.#characters += sign * (record.excerpt?.length ?? 0);
  }
}

const utf8 = new TextDecoder();

/** How an answer began; undefined for an empty one. */
export function toExcerpt(body: Uint8Array): string | undefined {
  return body.length === 0 ? undefined : utf8.decode(body.subarray(0, excerptBytesMax));
}
