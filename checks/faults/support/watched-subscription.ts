import { expect } from "vitest";
import type { EventBody } from "../../harness/client.ts";
import type { Attempt, Receiver } from "../../harness/receiver.ts";
import type { PublishLoad } from "./publish-load.ts";

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
  readonly load: PublishLoad;
  /** When brokers were killed, in order. */
  readonly killedAt: readonly number[];
}

/** Two groups of cursors: one that is being written and one that gathers meanwhile (100 events each, DESIGN section 6). */
const repeatedEventsMax = 200;
/** A cursor is written 50 ms after the event at the latest; a busy machine takes its time over the write. */
const repeatedMsMax = 2000;

/**
 * Every matching event from the subscription's start on arrived, in order. A repeat is the event just before (an attempt that failed), or
 * after a kill goes back to events whose acknowledgement may not have been written.
 */
export function expectDeliveredInOrder(subscription: WatchedSubscription, history: History): void {
  const expected = history.events.filter(({ topic }) => subscription.matches(topic));
  const indexes = new Map(expected.map(({ eventId }, index) => [eventId, index]));
  const { attempts } = subscription.receiver;
  let newest = expectStart(subscription, { history, expected, indexes }) - 1;
  let last: { readonly attempt: Attempt; readonly index: number } | undefined;
  for (const attempt of attempts) {
    expect(attempt.subscriptionId).toBe(subscription.id);
    const index = indexes.get(attempt.event.eventId) ?? Number.NaN;
    expect(attempt.event).toEqual(expected[index]);
    const from = last?.index ?? newest;
    const isNext = index === from + 1;
    const isAllowed = isNext || isAllowedRepeat({ last, index, attempt }, { history, attempts });
    expect({ filter: subscription.filter, from, to: index, isAllowed }).toMatchObject({ isAllowed: true });
    newest = Math.max(newest, index);
    last = { attempt, index };
  }
  expect(`${subscription.filter}: ${newest}`).toBe(`${subscription.filter}: ${expected.length - 1}`);
  const accepted = new Set(subscription.receiver.accepted().map(({ eventId }) => eventId));
  const first = indexes.get(attempts[0]?.event.eventId ?? "") ?? expected.length;
  expect(expected.slice(first).filter(({ eventId }) => !accepted.has(eventId))).toEqual([]);
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

/** After a kill a repeat goes back a few events, all accepted shortly before; without a kill it is of an attempt that failed. */
function isAllowedRepeat({ last, index, attempt }: Step, { history, attempts }: Delivered): boolean {
  if (last === undefined || index > last.index) return false;
  const { receivedAt } = last.attempt;
  const isAfterKill = history.killedAt.some((time) => time >= receivedAt && time <= attempt.receivedAt);
  if (!isAfterKill) return index === last.index && !last.attempt.isAccepted;
  const earlier = attempts.findLast(
    (one) => one.event.eventId === attempt.event.eventId && one.receivedAt < attempt.receivedAt,
  );
  const acceptedAt = earlier?.receivedAt ?? receivedAt;
  const killedAt = history.killedAt.find((time) => time >= acceptedAt) ?? Number.POSITIVE_INFINITY;
  return last.index - index <= repeatedEventsMax && killedAt - acceptedAt <= repeatedMsMax;
}
