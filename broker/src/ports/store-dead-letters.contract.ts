import { formatEventId, topicDigest } from "@stele/wire";
import { expect, it } from "vitest";
import { type DeadLetter, toLetterReason } from "../domain/dead-letter.ts";
import { endOfBlock, type Position, positionZero, toPosition } from "../domain/position.ts";
import { nothingFailed } from "../domain/subscription.ts";
import type { Progress, Store } from "./store.ts";
import { alpha, group, hashOf, history, subscriptionOf } from "./store-examples.contract.ts";

const everything = { after: undefined, limit: 10 };

/** The dead letter of an event of alpha. */
export function letterOf(number: number, position: Position, changes: Partial<DeadLetter> = {}): DeadLetter {
  const sequence = position - endOfBlock(0);
  return {
    subscriptionId: subscriptionOf(number).id,
    position,
    eventId: formatEventId({ topicDigest: topicDigest(alpha), sequence, blockNumber: 2 }),
    topic: alpha,
    attempts: 3,
    reason: 'answered 500: it\'s "down" – völlig',
    failedAt: 1_700_000_000_500,
    ...changes,
  };
}

function passing(number: number, cursor: Position, skipped: readonly DeadLetter[]): Progress {
  const { id, notifiedCount, notifiedAt } = subscriptionOf(number);
  return { id, epoch: 0, cursor, notifiedCount, notifiedAt, ...nothingFailed, skipped };
}

/** The guarantees about dead letters. */
export function testDeadLetters(store: () => Store): void {
  const [first, second, third] = [toPosition(2, 0), toPosition(2, 1), toPosition(2, 2)];
  const insert = (number: number, epoch = 0) =>
    store().insertSubscription(subscriptionOf(number, { cursor: toPosition(1, 0), epoch }), 0);
  const list = (number = 1, page: Parameters<Store["deadLetters"]["list"]>[1] = everything) =>
    store().deadLetters.list(subscriptionOf(number).id, page);

  it("writes a dead letter for each skipped event that the cursor passes, once, and lists them in pages", async () => {
    for (const number of [1, 2]) await insert(number);
    const letters = [first, second, third].map((position) => letterOf(1, position));
    expect(await store().saveProgress([passing(1, third, letters), passing(2, first, [])])).toEqual([]);
    expect(await store().saveProgress([passing(1, third, letters)])).toEqual([]);
    expect(await list()).toEqual(letters);
    expect(await list(2)).toEqual([]);
    expect(await list(1, { after: undefined, limit: 1 })).toEqual(letters.slice(0, 1));
    expect(await list(1, { after: first, limit: 1 })).toEqual(letters.slice(1, 2));
    const { id } = subscriptionOf(1);
    expect([await store().deadLetters.count(id), await store().deadLetters.count(subscriptionOf(2).id)]).toEqual([
      3, 0,
    ]);
    const { eventId } = letterOf(1, second);
    expect(await store().deadLetters.find(id, eventId)).toEqual(letters.slice(1, 2));
    expect(await store().deadLetters.find(subscriptionOf(2).id, eventId)).toEqual([]);
    expect((await store().findSubscription(id))?.cursor).toBe(third);
  });

  it("finds all dead letters of an eventId that two topics have, by position", async () => {
    await insert(1);
    const { eventId } = letterOf(1, first);
    const letters = [first, second, third].map((position) => letterOf(1, position, { eventId }));
    await store().saveProgress([passing(1, third, letters)]);
    expect(await store().deadLetters.find(subscriptionOf(1).id, eventId)).toEqual(letters);
  });

  it("lists a dead letter whose reason was cut inside a character", async () => {
    await insert(1);
    const letter = letterOf(1, first, { reason: toLetterReason(`${"a".repeat(255)}\u{1f600} is down`) });
    await store().saveProgress([passing(1, first, [letter])]);
    expect(await list()).toEqual([letter]);
  });

  it("a late write does not restore a removed dead letter", async () => {
    await insert(1);
    const letter = letterOf(1, first);
    await store().saveProgress([passing(1, second, [letter])]);
    expect(await store().deadLetters.remove([letter])).toBe(1);
    expect(await store().saveProgress([passing(1, second, [letter])])).toEqual([]);
    expect(await store().saveProgress([passing(1, third, [letter])])).toEqual([]);
    expect(await list()).toEqual([]);
  });

  it("a write under another epoch adds no dead letter", async () => {
    await insert(1, 5);
    expect(await store().saveProgress([passing(1, first, [letterOf(1, first)])])).toEqual([subscriptionOf(1).id]);
    expect(await list()).toEqual([]);
  });

  it("removes and replaces a dead letter only if it has not changed since it was read", async () => {
    await insert(1);
    const letter = letterOf(1, first);
    await store().saveProgress([passing(1, first, [letter])]);
    const next = { attempts: 4, reason: "answered 503", failedAt: 1_700_000_000_900 };
    const { eventId } = letterOf(1, second);
    for (const other of [
      { ...letter, eventId },
      { ...letter, failedAt: letter.failedAt - 1 },
    ]) {
      expect(await store().deadLetters.remove([other])).toBe(0);
      expect(await store().deadLetters.replace(other, next)).toBe(false);
    }
    expect(await store().deadLetters.replace(letter, next)).toBe(true);
    expect([await store().deadLetters.remove([letter]), await store().deadLetters.replace(letter, next)]).toEqual([
      0,
      false,
    ]);
    expect(await list()).toEqual([{ ...letter, ...next }]);
    expect(await store().deadLetters.remove([{ ...letter, ...next }, letter])).toBe(1);
    expect(await list()).toEqual([]);
  });

  it("drops dead letters after a cursor that an operator moves back, and keeps them in any other change", async () => {
    await insert(1);
    const letters = [first, second, third].map((position) => letterOf(1, position));
    await store().saveProgress([passing(1, third, letters)]);
    const key = { id: subscriptionOf(1).id, groupId: group };
    expect(await store().moveSubscription({ ...key, epoch: 9 }, { cursor: positionZero }, 0)).toBe("refused");
    expect(await store().moveSubscription({ ...key, epoch: 0 }, { state: "paused" }, 0)).toBe("moved");
    expect(await list()).toEqual(letters);
    expect(await store().moveSubscription({ ...key, epoch: 1 }, { cursor: second }, 0)).toBe("moved");
    expect(await list()).toEqual(letters.slice(0, 2));
  });

  it("drops dead letters of events that a rollback removes", async () => {
    await store().applyBlocks(group, history);
    const [kept, gone] = [letterOf(1, third), letterOf(1, toPosition(6, 0))];
    await insert(1);
    await store().saveProgress([passing(1, gone.position, [kept, gone])]);
    await store().rollBack(group, { number: 5, hash: hashOf(5) });
    expect(await list()).toEqual([kept]);
  });

  it("drops dead letters with their subscription", async () => {
    for (const number of [1, 2]) await insert(number);
    for (const number of [1, 2]) await store().saveProgress([passing(number, first, [letterOf(number, first)])]);
    expect(await store().deleteSubscription({ id: subscriptionOf(1).id, epoch: 7 })).toBe(false);
    expect(await list()).toHaveLength(1);
    expect(await store().deleteSubscription(subscriptionOf(1))).toBe(true);
    expect([await list(), await list(2)]).toEqual([[], [letterOf(2, first)]]);
    await insert(1);
    expect(await list()).toEqual([]);
  });
}
