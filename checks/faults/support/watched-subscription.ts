import { expect } from "vitest";
import type { EventBody } from "../../harness/client.ts";
import type { Attempt, Receiver } from "../../harness/receiver.ts";
import type { PublishRecord } from "./publish-record.ts";

/** A subscription that records every callback. Times are of `performance.now()`. */
export interface WatchedSubscription {
  readonly id: string;
  readonly filter: string;
  readonly matches: (topic: string) => boolean;
  readonly receiver: Receiver;
  readonly subscribedAt: number;
}

/** What an outside observer knows. */
export interface History {
  /** Every event of the group, in the group's order. */
  readonly events: readonly EventBody[];
  readonly load: Pick<PublishRecord, "sent">;
  /** The faults, in order of time. */
  readonly faults: readonly Fault[];
}

/** A period in which a broker may have failed to write acknowledgements. */
export interface Fault {
  readonly from: number;
  readonly to: number;
}

/** Maximum number of events that one fault repeats: the acknowledgements of 100 events in a write of cursors, and of 100 more collected meanwhile. */
const repeatedEventsMax = 200;
/** Maximum time from an acknowledgement to the write of the cursor, in milliseconds: usually it is 50, but longer on a busy machine. */
const repeatedMsMax = 2000;

/**
 * Checks that every matching event since the start of the subscription arrived, in order. Allows two kinds of repeat: the last event after a failed attempt,
 * and, after a fault, events whose acknowledgement the broker may not have written. Returns the number of repeats.
 */
export function expectDeliveredInOrder(subscription: WatchedSubscription, history: History): number {
  const expected = history.events.filter(({ topic }) => subscription.matches(topic));
  const indexes = new Map(expected.map(({ eventId }, index) => [eventId, index]));
  const { attempts } = subscription.receiver;
  let newest = expectStart(subscription, { history, expected, indexes }) - 1;
  let last: { readonly attempt: Attempt; readonly index: number } | undefined;
  let repeats = 0;
  for (const attempt of attempts) {
    expect(attempt.subscriptionId).toBe(subscription.id);
    const index = indexes.get(attempt.event.eventId) ?? Number.NaN;
    expect(attempt.event).toEqual(expected[index]);
    const from = last?.index ?? newest;
    // A node that lost the subscription may make a last attempt. The new owner then continues at its own position.
    const isNext = index === from + 1 || index === newest + 1;
    const isAllowed = isNext || isAllowedRepeat({ last, index, attempt }, { history, attempts });
    if (!isAllowed) throw new Error(describeStep({ last, index, attempt }, { subscription, history }));
    if (index <= newest) repeats += 1;
    newest = Math.max(newest, index);
    last = { attempt, index };
  }
  expect(`${subscription.filter}: ${newest}`).toBe(`${subscription.filter}: ${expected.length - 1}`);
  const accepted = new Set(subscription.receiver.accepted().map(({ eventId }) => eventId));
  const first = indexes.get(attempts[0]?.event.eventId ?? "") ?? expected.length;
  expect(expected.slice(first).filter(({ eventId }) => !accepted.has(eventId))).toEqual([]);
  return repeats;
}

interface Expected {
  readonly history: History;
  readonly expected: readonly EventBody[];
  readonly indexes: ReadonlyMap<string, number>;
}

/** Checks that the first deliveries miss no event that was sent after the subscribe call. Returns the index of the first event that arrived. */
function expectStart(
  { receiver, subscribedAt, filter }: WatchedSubscription,
  { history, expected, indexes }: Expected,
): number {
  const start = indexes.get(receiver.attempts[0]?.event.eventId ?? "") ?? expected.length;
  const missed = expected.slice(0, start).filter(({ content }) => {
    const sentAt = history.load.sent.get(Buffer.from(content, "base64").toString())?.sentAt ?? 0;
    return sentAt > subscribedAt;
  });
  expect({ filter, missed }).toEqual({ filter, missed: [] });
  return start;
}

interface Delivered {
  readonly history: History;
  readonly attempts: readonly Attempt[];
}

interface Step {
  readonly last: { readonly attempt: Attempt; readonly index: number } | undefined;
  readonly index: number;
  readonly attempt: Attempt;
}

/** Describes a wrong step: its events, nodes and times, and the faults. */
function describeStep(
  { last, index, attempt }: Step,
  { subscription, history }: { readonly subscription: WatchedSubscription; readonly history: History },
): string {
  const before = last === undefined ? "the beginning" : `${last.index} (${describeAttempt(last.attempt)})`;
  const faults = history.faults.map(({ from, to }) => `${Math.round(from)} to ${Math.round(to)}`);
  return `${subscription.filter} ${subscription.id}: ${before} was followed by ${index} (${describeAttempt(attempt)}); faults: ${faults.join(", ")}`;
}

function describeAttempt({ receivedAt, sender: caller, isAccepted }: Attempt): string {
  return `at ${Math.round(receivedAt)} by ${caller ?? "unknown"}${isAccepted ? "" : ", not accepted"}`;
}

/** A repeat may follow a failed attempt. After a fault, it may also go back to an event that was accepted during the fault or shortly before. */
function isAllowedRepeat({ last, index, attempt }: Step, { history, attempts }: Delivered): boolean {
  if (last === undefined || index > last.index) return false;
  if (index === last.index && !last.attempt.isAccepted) return true;
  const { receivedAt } = last.attempt;
  const earlier = attempts.findLast(
    (one) => one.event.eventId === attempt.event.eventId && one.receivedAt < attempt.receivedAt,
  );
  const acceptedAt = earlier?.receivedAt ?? receivedAt;
  return (
    last.index - index <= repeatedEventsMax &&
    history.faults.some(
      ({ from, to }) =>
        from <= attempt.receivedAt && to >= receivedAt && acceptedAt >= from - repeatedMsMax && acceptedAt <= to,
    )
  );
}
