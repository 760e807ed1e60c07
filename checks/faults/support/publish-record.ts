import type { Outcome } from "../../harness/apis.ts";

/** An event that a publisher sent. Times are of `performance.now()`. */
export interface SentEvent {
  readonly topic: string;
  /** Unique in a test. */
  readonly content: string;
  readonly sentAt: number;
}

/** An event whose publish returned SUCCESS. */
export interface AcknowledgedEvent extends SentEvent {
  readonly eventId: string;
  readonly acknowledgedAt: number;
}

const transactionTimeout = 200_201;

/** What publishers know: the sent, the acknowledged and the refused events. */
export class PublishRecord {
  readonly sent = new Map<string, SentEvent>();
  readonly acknowledged = new Map<string, AcknowledgedEvent>();
  /** Answers other than SUCCESS, and eventIds that two publishes got. */
  readonly refusals: string[] = [];
  /** Code of each refused publish, by content. Its event was not published. */
  readonly refused = new Map<string, number>();
  /** Contents whose publish returned TIMEOUT: their events may appear or not. */
  readonly undecided = new Set<string>();

  /** Creates and records the next event to send. */
  begin(topic: string, options: { readonly label?: string; readonly contentCharacters?: number } = {}): SentEvent {
    const { label = "", contentCharacters = 0 } = options;
    const content = `${label}${topic} & ${this.sent.size} `.padEnd(contentCharacters, "-");
    const event = { topic, content, sentAt: performance.now() };
    this.sent.set(event.content, event);
    return event;
  }

  /** Records an outcome and returns whether the publish succeeded. */
  note(event: SentEvent, outcome: Outcome): boolean {
    const result = outcome.isGood ? (outcome.value as { eventId: string; status: string }) : undefined; // A SendResult.
    if (result?.status !== "SUCCESS") {
      this.refusals.push(JSON.stringify(outcome));
      if (outcome.isGood || outcome.code === transactionTimeout) this.undecided.add(event.content);
      else this.refused.set(event.content, outcome.code);
      return false;
    }
    const { eventId } = result;
    if (this.acknowledged.has(eventId)) this.refusals.push(`two publishes got ${eventId}`);
    this.acknowledged.set(eventId, { ...event, eventId, acknowledgedAt: performance.now() });
    return true;
  }
}
