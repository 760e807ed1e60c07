import { expect } from "vitest";
import type { EventBody } from "../../harness/client.ts";
import type { Attempt, Receiver } from "../../harness/receiver.ts";
import type { PublishRecord } from "./publish-record.ts";

/** A subscription whose every callback is recorded. Times are of `performance.now()`. */
export interface WatchedSubscription {
  readonly id: string;
  readonly filter: string;
  readonly matches: (topic: string) => boolean;
  readonly receiver: Receiver;
  readonly subscribedAt: number;
}

/** What an observer outside knows. */
export interface History {
  /** Every event of the group, in its order. */
  readonly events: readonly EventBody[];
  readonly load: Pick<PublishRecord, "sent">;
  /** When cursors could not be written, in order. */
  readonly faults: readonly Fault[];
}

/** A time in which a broker could not write what was acknowledged to it: a moment, where it was killed. */
export interface Fault {
  readonly from: number;
  readonly to: number;
}

/** Two groups of cursors: one that is being written and one that gathers meanwhile (100 events each, DESIGN section 6). */
const repeatedEventsMax = 200;
/** A cursor is written 50 ms after the event at the latest; a busy machine takes its time over the write. */
const repeatedMsMax = 2000;

/**
 * Every matching event from the subscription's start on arrived, in order. A repeat is the event just before (an attempt that failed), or
 * after a fault goes back to events whose acknowledgement may not have been written. Answers how many attempts were repeats.
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
    // After a last attempt of a node that had lost the subscription, its owner goes on where it was.
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

/** Index of the first event that arrived: none that was sent after the subscription was answered is left out. */
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

/** What a step that is not allowed says to whoever looks for its reason: who made it, when, and when there were faults. */
function describeStep(
  { last, index, attempt }: Step,
  { subscription, history }: { readonly subscription: WatchedSubscription; readonly history: History },
): string {
  const before = last === undefined ? "the beginning" : `${last.index} (${describeAttempt(last.attempt)})`;
  const faults = history.faults.map(({ from, to }) => `${Math.round(from)} to ${Math.round(to)}`);
  return `${subscription.filter} ${subscription.id}: ${before} was followed by ${index} (${describeAttempt(attempt)}); faults: ${faults.join(", ")}`;
}

function describeAttempt({ receivedAt, caller, isAccepted }: Attempt): string {
  return `at ${Math.round(receivedAt)} by ${caller ?? "unknown"}${isAccepted ? "" : ", not accepted"}`;
}

/** After a fault a repeat goes back a few events, all accepted in it or shortly before; without one it is of an attempt that failed. */
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
