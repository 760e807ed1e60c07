import { beforeEach, expect, it } from "vitest";
import { before, type Position, positionZero, toPosition } from "../domain/position.ts";
import { parseTopicFilter } from "../domain/topic-filter.ts";
import type { TopicName } from "../domain/topic-name.ts";
import type { SessionClaim, SessionKey, ShareId, StoredFilter } from "./session-store.ts";
import { claimOf, filterOf as anyFilterOf, idOf, position } from "./session-examples.contract.ts";
import type { StoredShare } from "./share-store.ts";
import type { Store } from "./store.ts";
import { group, hashOf, otherGroup } from "./store-examples.contract.ts";

const filter = parseTopicFilter("$share/workers/a/#");
const places = [toPosition(4, 2), toPosition(4, 3), toPosition(5, 0)] as const;
const topic = "a/ü" as TopicName;
const progress = { cursor: position, taken: position, outside: positionZero, inFlight: new Uint8Array() };

function filterOf(number: number): StoredFilter {
  return anyFilterOf(number, { filter, qos: 1, isNoLocal: false, identifier: undefined });
}

/** A filter of each of a thousand shares. */
function manyFrom(firstNumber: number): readonly StoredFilter[] {
  return Array.from({ length: 1_000 }, (_, index) =>
    anyFilterOf(firstNumber + index, { filter: parseTopicFilter(`$share/workers/b/${index}`) }),
  );
}

/** The guarantees of the ShareStore port. */
export function testShares(store: () => Store): void {
  const sessions = () => store().sessions;
  const shares = () => store().shares;

  const claim = async (number: number, changes: Partial<SessionClaim> = {}): Promise<SessionKey> => {
    const own = { key: `client ${number}`, will: undefined, willDelayMs: 0, newId: idOf(number) };
    const claimed = await sessions().claimSession(claimOf({ ...own, ...changes }));
    if (claimed.status === "begun" && claimed.current !== undefined) return claimed.current;
    if (claimed.status === "resumed") return claimed.current.session;
    throw new Error(`the session is ${claimed.status}`);
  };
  const join = async (number: number, changes: Partial<SessionClaim> = {}): Promise<SessionKey> => {
    const key = await claim(number, changes);
    await sessions().saveSessionFilters(key, { put: [filterOf(number)], removed: [], generation: 0 });
    return key;
  };
  const leave = (key: SessionKey) => sessions().saveSessionFilters(key, { put: [], removed: [filter], generation: 0 });
  const find = async (): Promise<StoredShare> => {
    const share = await shares().findShare(group, filter);
    if (share === undefined) throw new Error("there is no share");
    return share;
  };
  const take = async (share: StoredShare, to: SessionKey, positions: readonly Position[]) => {
    const gifts = positions.map((place) => ({ topic, position: place, to: { id: to.id, epoch: to.epoch } }));
    const cursor = positions.at(-1) ?? share.cursor;
    return shares().takeShared({ id: share.id, epoch: share.epoch, cursor, gifts, dropped: [] });
  };
  const returned = async (id: ShareId) =>
    (await shares().listReturned(id, { after: positionZero, atMost: 9 })).map((place) => place.position);

  let first: SessionKey;
  let share: StoredShare;
  beforeEach(async () => {
    first = await join(1);
    share = await find();
  });

  it("a share begins with its first member, and ends when its last member leaves", async () => {
    expect(share.cursor).toBe(position);
    const second = await join(2);
    await leave(first);
    expect(await find()).toEqual(share);
    await leave(second);
    expect(await shares().findShare(group, filter)).toBeUndefined();
    await join(3);
    expect((await find()).id).not.toBe(share.id);
  });

  it("a session joins and leaves a thousand shares at once, and shares with other members continue", async () => {
    const second = await claim(2);
    const ofBoth = manyFrom(1_000).slice(0, 2);
    await sessions().saveSessionFilters(first, { put: ofBoth, removed: [], generation: 0 });
    const put = [filterOf(2), ...manyFrom(2_000)];
    const filters = put.map((one) => one.filter);
    await sessions().saveSessionFilters(second, { put, removed: [], generation: 0 });
    expect(await find()).toEqual(share);
    expect(await shares().findShareCursors(group, filters)).toEqual(new Map(filters.map((one) => [one, position])));
    await sessions().saveSessionFilters(second, { put: [], removed: filters, generation: 0 });
    const kept = [filter, ...ofBoth.map((one) => one.filter)];
    expect(await shares().findShareCursors(group, filters)).toEqual(new Map(kept.map((one) => [one, position])));
  });

  it("a share ends when the session of its last member ends, or when that member's filter is removed", async () => {
    await sessions().removeSession(first);
    expect(await shares().findShare(group, filter)).toBeUndefined();
    await join(2);
    expect(await sessions().removeSessionFilter(filterOf(2).id)).toBe(true);
    expect(await shares().findShare(group, filter)).toBeUndefined();
    const third = await join(3);
    await claim(3, { isClean: true, newId: idOf(4) });
    expect(third.id).toBe(idOf(3));
    expect(await shares().findShare(group, filter)).toBeUndefined();
  });

  it("the same filter in another group is a separate share", async () => {
    await join(2, { groupId: otherGroup });
    expect((await shares().findShare(otherGroup, filter))?.id).not.toBe(share.id);
    await leave(first);
    expect(await shares().findShare(group, filter)).toBeUndefined();
    expect(await shares().findShare(otherGroup, filter)).toBeDefined();
  });

  it("a thousand shares begin in a group that another group has too, and end in one of the two", async () => {
    const [second, third] = [await claim(2), await claim(3, { groupId: otherGroup })];
    const filters = manyFrom(0).map((one) => one.filter);
    await sessions().saveSessionFilters(second, { put: manyFrom(1_000), removed: [], generation: 0 });
    await sessions().saveSessionFilters(third, { put: manyFrom(2_000), removed: [], generation: 0 });
    const all = new Map(filters.map((one) => [one, position]));
    expect(await shares().findShareCursors(group, filters)).toEqual(all);
    expect(await shares().findShareCursors(otherGroup, filters)).toEqual(all);
    await sessions().saveSessionFilters(second, { put: [], removed: filters, generation: 0 });
    expect(await shares().findShareCursors(group, filters)).toEqual(new Map());
    expect(await shares().findShareCursors(otherGroup, filters)).toEqual(all);
  });

  it("only one of two concurrent takes succeeds", async () => {
    const second = await join(2);
    const outcomes = await Promise.all([take(share, first, places), take(share, second, places)]);
    expect(outcomes.toSorted()).toEqual(["refused", "taken"]);
    expect(await find()).toEqual({ ...share, epoch: share.epoch + 1, cursor: places[2] });
  });

  it("refuses a take for a member with another epoch, and changes nothing", async () => {
    const again = await claim(1);
    expect(await take(share, first, places)).toBe("member-refused");
    expect(await find()).toEqual(share);
    expect(await take(share, again, places)).toBe("taken");
  });

  it.each<readonly [string, () => Promise<unknown>]>([
    [
      "the member's session is detached",
      () => sessions().detachSession(first, { will: undefined, willDelayMs: 0, expiryMs: 1_000 }),
    ],
    ["the member's session has another connection", () => claim(1)],
    ["the member's session is removed", () => sessions().removeSession(first)],
    ["the member's connection is lost", () => sessions().detachLost(group)],
  ])("a member's unacknowledged events return to the share when %s", async (_, end) => {
    await join(2);
    await take(share, first, places);
    await sessions().saveSessions(
      [
        {
          ...first,
          ...progress,
          settled: [{ share: share.id, position: places[1], givenEpoch: first.epoch }],
        },
      ],
      { isDurable: false },
    );
    expect(await returned(share.id)).toEqual([]);
    expect(await shares().findReturning([share.id])).toEqual([]);
    await end();
    const list = (after: Position, atMost: number) => shares().listReturned(share.id, { after, atMost });
    expect(await list(positionZero, 9)).toEqual([
      { topic, position: places[0] },
      { topic, position: places[2] },
    ]);
    expect(await list(positionZero, 1)).toEqual([{ topic, position: places[0] }]);
    expect(await list(places[0], 9)).toEqual([{ topic, position: places[2] }]);
    expect(await shares().findReturning([share.id, idOf(9) as string as ShareId])).toEqual([share.id]);
  });

  it("finds the few returned events among thousands of unacknowledged ones of two shares", async () => {
    const otherFilter = parseTopicFilter("$share/others/a/#");
    const member = await join(2);
    const other = { ...filterOf(3), filter: otherFilter };
    await sessions().saveSessionFilters(member, { put: [other], removed: [], generation: 0 });
    const others = await shares().findShare(group, otherFilter);
    if (others === undefined) throw new Error("there is no other share");
    const held = Array.from({ length: 4_500 }, (_, index) => toPosition(9, index));
    const returning = [1_999, 2_000, 4_499].map((index) => toPosition(9, index));
    for (const { id, epoch } of [share, others]) {
      const gifts = held.map((place) => {
        const { id: session, epoch: sessionEpoch } = returning.includes(place) ? first : member;
        return { topic, position: place, to: { id: session, epoch: sessionEpoch } };
      });
      await shares().takeShared({ id, epoch, cursor: toPosition(9, 4_499), gifts, dropped: [] });
    }
    expect(await shares().findReturning([share.id, others.id])).toEqual([]);
    await sessions().removeSession(first);
    const found = await shares().findReturning([share.id, others.id]);
    expect(found.toSorted()).toEqual([share.id, others.id].toSorted());
    expect(await shares().findReturning([others.id])).toEqual([others.id]);
    for (const { id } of [share, others]) {
      expect(await returned(id)).toEqual(returning);
      const page = { after: returning[0] ?? positionZero, atMost: 1 };
      expect(await shares().listReturned(id, page)).toEqual([{ topic, position: returning[1] }]);
    }
  });

  it("findShareCursors returns the cursor of a share, or the position before its oldest unacknowledged event", async () => {
    const findPlaces = () => shares().findShareCursors(group, [filter, parseTopicFilter("$share/others/a/#")]);
    expect(await findPlaces()).toEqual(new Map([[filter, position]]));
    await take(share, first, places);
    expect(await findPlaces()).toEqual(new Map([[filter, before(places[0])]]));
    const settle = async (positions: readonly Position[]): Promise<void> => {
      const settled = positions.map((place) => ({ share: share.id, position: place, givenEpoch: first.epoch }));
      const state = { ...first, ...progress, settled };
      await sessions().saveSessions([state], { isDurable: false });
    };
    await settle([places[0], places[2]]);
    expect(await findPlaces()).toEqual(new Map([[filter, before(places[1])]]));
    await settle([places[1]]);
    expect(await findPlaces()).toEqual(new Map([[filter, places[2]]]));
    expect(await shares().findShareCursors(otherGroup, [filter])).toEqual(new Map());
    expect(await shares().findShareCursors(group, [])).toEqual(new Map());
  });

  it("gives returned events to the next member, and drops returned events that no longer exist", async () => {
    const second = await join(2);
    await take(share, first, places);
    await sessions().removeSession(first);
    const now = await find();
    const gifts = [{ topic, position: places[0], to: { id: second.id, epoch: second.epoch } }];
    const order = { id: now.id, epoch: now.epoch, cursor: now.cursor, gifts, dropped: [places[1]] };
    expect(await shares().takeShared(order)).toBe("taken");
    expect(await returned(share.id)).toEqual([places[2]]);
  });

  it("ignores acknowledgements from an ended connection, and acknowledgements of events that another member holds", async () => {
    const second = await join(2);
    await take(share, first, places);
    const again = await claim(1);
    await take(await find(), second, places);
    const settled = places.map((place) => ({ share: share.id, position: place, givenEpoch: second.epoch }));
    const state = { ...progress, settled };
    expect(await sessions().saveSessions([{ ...first, ...state }], { isDurable: false })).toEqual([first.id]);
    await sessions().saveSessions([{ ...again, ...state }], { isDurable: false });
    await sessions().removeSession(second);
    expect(await returned(share.id)).toEqual([...places]);
  });

  it("ignores acknowledgements of events that the session got under an earlier epoch", async () => {
    await join(2);
    await take(share, first, places);
    const again = await claim(1);
    await take(await find(), again, places);
    const settled = [
      { share: share.id, position: places[1], givenEpoch: first.epoch },
      { share: share.id, position: places[2], givenEpoch: again.epoch },
    ];
    const state = { ...progress, settled };
    expect(await sessions().saveSessions([{ ...again, ...state }], { isDurable: false })).toEqual([]);
    await sessions().removeSession(again);
    expect(again.epoch).not.toBe(first.epoch);
    expect(await returned(share.id)).toEqual([places[0], places[1]]);
  });

  it("a change that replaces all filters of a session ends its share, unless it has the share's filter", async () => {
    const own = { ...filterOf(9), filter: parseTopicFilter("own") };
    const replace = (put: readonly StoredFilter[]) =>
      sessions().saveSessionFilters(first, { put, removed: [], generation: 0, replacesAll: true });
    await sessions().saveSessionFilters(first, { put: [own], removed: [], generation: 0 });
    expect(await replace([filterOf(1)])).toBe("saved");
    expect((await sessions().findSession(first.id))?.filters).toEqual([filterOf(1)]);
    expect(await find()).toEqual(share);
    expect(await replace([own])).toBe("saved");
    expect((await sessions().findSession(first.id))?.filters).toEqual([own]);
    expect(await shares().findShare(group, filter)).toBeUndefined();
  });

  it("undoes a take whose outcome is unknown, and refuses a take that comes later under the earlier epoch", async () => {
    await take(share, first, places);
    const gifts = places.map((place) => ({ topic, position: place, to: { id: first.id, epoch: first.epoch } }));
    await shares().returnShared({ id: share.id, gifts });
    expect(await returned(share.id)).toEqual([...places]);
    expect(await take({ ...share, epoch: share.epoch + 1 }, first, places)).toBe("refused");
  });

  it("undoes a take even if the member's session got a new epoch since, but does not undo a later take", async () => {
    const own = { ...filterOf(9), filter: parseTopicFilter("own") };
    await sessions().saveSessionFilters(first, { put: [own], removed: [], generation: 0 });
    await take(share, first, places);
    await sessions().removeSessionFilter(own.id);
    const gifts = places.map((place) => ({ topic, position: place, to: first }));
    await shares().returnShared({ id: share.id, gifts });
    expect(await returned(share.id)).toEqual([...places]);
    await take(await find(), await claim(1), places);
    await shares().returnShared({ id: share.id, gifts });
    expect(await returned(share.id)).toEqual([]);
  });

  it("does not undo a take that another node made under the same epoch", async () => {
    const second = await join(2);
    await take(share, second, places);
    const gifts = places.map((place) => ({ topic, position: place, to: first }));
    await shares().returnShared({ id: share.id, gifts });
    expect(await returned(share.id)).toEqual([]);
  });

  it("a member keeps its events when its session gets a new epoch on the same connection", async () => {
    const own = { ...filterOf(9), filter: parseTopicFilter("own") };
    await sessions().saveSessionFilters(first, { put: [own], removed: [], generation: 0 });
    await take(share, first, places);
    await sessions().removeSessionFilter(own.id);
    expect(await returned(share.id)).toEqual([]);
  });

  it("a rollback of the index moves a share's cursor back under a new epoch, and removes the events after it", async () => {
    await join(2);
    await take(share, first, places);
    const now = await find();
    await store().rollBack(group, { number: 4, hash: hashOf(4) });
    const back = await find();
    expect(back.cursor).toBeLessThan(places[2]);
    expect(back.epoch).toBeGreaterThan(now.epoch);
    await sessions().removeSession(first);
    expect(await returned(share.id)).toEqual(places.slice(0, 2));
  });
}
