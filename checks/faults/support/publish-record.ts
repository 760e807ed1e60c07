import type { Outcome } from "../../harness/doors.ts";

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

const transactionTimeout = 200_201;

/** What is known outside of events that were sent: which were acknowledged, and which were refused. */
export class PublishRecord {
  readonly sent = new Map<string, SentEvent>();
  readonly acknowledged = new Map<string, AcknowledgedEvent>();
  /** Answers that were neither SUCCESS nor a lost connection. */
  readonly refusals: string[] = [];
  /** By content, the code of each publish that was refused: its event was not published. */
  readonly refused = new Map<string, number>();
  /** Contents whose publish was answered TIMEOUT: their events may come, or may not. */
  readonly undecided = new Set<string>();

  /** The next event to send. */
  begin(topic: string, options: { readonly label?: string; readonly contentCharacters?: number } = {}): SentEvent {
    const { label = "", contentCharacters = 0 } = options;
    const content = `${label}${topic} & ${this.sent.size} `.padEnd(contentCharacters, "-");
    const event = { topic, content, sentAt: performance.now() };
    this.sent.set(event.content, event);
    return event;
  }

  /** Answers whether the publish succeeded. */
  note(event: SentEvent, outcome: Outcome): boolean {
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
