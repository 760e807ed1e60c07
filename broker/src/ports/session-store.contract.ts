import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { NodeId } from "../domain/node.ts";
import { endOfBlock, positionZero, toPosition } from "../domain/position.ts";
import type { StoredQuota } from "../domain/quota.ts";
import type { SessionClaim, SessionClaimed, SessionStore, StoredSession } from "./session-store.ts";
import { claimOf, filterOf, idOf, position, will } from "./session-examples.contract.ts";
import { testShares } from "./share-store.contract.ts";
import type { Store } from "./store.ts";
import { everyByte, group, hashOf, history, otherGroup, subscriptionOf } from "./store-examples.contract.ts";

/** The guarantees of the SessionStore port. `create` returns an empty store that is not started. */
export function testSessionStore(name: string, create: () => Promise<Store>): void {
  describe(`${name} keeps the contract of sessions`, () => {
    let store: Store;
    beforeEach(async () => {
      store = await create();
      await store.start();
      await store.applyBlocks(group, history);
    });
    afterEach(async () => store.stop());

    describe("claims", () => testClaims(() => store.sessions));
    describe("due wills", () => testDueWills(() => store.sessions));
    describe("state", () => testState(() => store.sessions));
    describe("due sessions", () => testDue(() => store.sessions));
    describe("rolling back", () => testRollBack(() => store));
    describe("shares", () => testShares(() => store));
    describe("owners", () => testOwners(() => store));
  });
}

async function begin(sessions: SessionStore, changes: Partial<SessionClaim> = {}): Promise<StoredSession> {
  const claimed = await sessions.claimSession(claimOf(changes));
  if (claimed.status !== "begun" || claimed.current === undefined) throw new Error(`the session is ${claimed.status}`);
  return claimed.current;
}

function testClaims(sessions: () => SessionStore): void {
  it("begins a session, and gives it to the next connection under a new epoch", async () => {
    const begun = await begin(sessions());
    expect(begun).toMatchObject({
      id: idOf(1),
      epoch: 7,
      cursor: position,
      taken: position,
      outside: positionZero,
      will,
      detachedAt: undefined,
    });
    const again = await sessions().claimSession(
      claimOf({ newId: idOf(2), will: undefined, expiryMs: 5, principal: "x" }),
    );
    const session = { ...begun, epoch: 8, will: undefined, expiryMs: 5, principal: "x" };
    expect(again).toEqual({ status: "resumed", former: begun, current: { session, filters: [] }, dueWill: undefined });
    expect(await sessions().findSession(idOf(1))).toEqual({ session, filters: [] });
  });
  it("finds a session while its filters change", async () => {
    const session = await begin(sessions());
    await sessions().saveSessionFilters(session, { put: [filterOf(1), filterOf(2)], removed: [], generation: 0 });
    const change = { put: [], removed: [filterOf(1).filter], generation: 0 };
    const [found, owner, listed, saved] = await Promise.all([
      sessions().findSession(session.id),
      sessions().findFilterOwner(filterOf(2).id),
      sessions().listSessions({ after: undefined, limit: 9 }),
      sessions().saveSessionFilters(session, change),
    ]);
    expect([found?.session, owner?.session, listed[0]?.session, saved]).toEqual([session, session, session, "saved"]);
  });
  it("keeps sessions with the same name apart by group and protocol", async () => {
    await begin(sessions());
    await begin(sessions(), { newId: idOf(2), groupId: otherGroup });
    await begin(sessions(), { newId: idOf(3), protocol: "STOMP" });
    const page = await sessions().listSessions({ after: idOf(1), limit: 1 });
    expect(page.map(({ session }) => session.id)).toEqual([idOf(2)]);
  });
  it("ends a session and its filters if the next connection starts a new session", async () => {
    const former = await begin(sessions());
    await sessions().saveSessionFilters(former, { put: [filterOf(1)], removed: [], generation: 0 });
    const claimed = await sessions().claimSession(claimOf({ newId: idOf(2), isClean: true }));
    expect(claimed).toMatchObject({ status: "begun", former, current: { id: idOf(2) } });
    expect(await sessions().findSession(idOf(1))).toBeUndefined();
    expect(await sessions().findFilterOwner(filterOf(1).id)).toBeUndefined();
    const unstored = await sessions().claimSession(claimOf({ isClean: true, isStored: false, willId: idOf(98) }));
    expect(unstored).toMatchObject({ status: "begun", current: undefined, dueWill: "unstored" });
    const wills = await sessions().listSessions({ after: undefined, limit: 9 });
    expect(wills.map(({ session }) => session.id)).toEqual([idOf(99)]);
  });
  it("resumes a stream only if it has filters: a stream without filters is left from an attach that failed early", async () => {
    const named = { protocol: "STOMP", isStream: true } as const;
    const former = await begin(sessions(), named);
    const second = await sessions().claimSession(claimOf({ ...named, newId: idOf(2), position: positionZero }));
    expect(second).toMatchObject({ status: "begun", former, current: { id: idOf(2), taken: positionZero } });
    expect(await sessions().saveSessionFilters(former, { put: [filterOf(1)], removed: [], generation: 0 })).toBe(
      "refused",
    );
    const key = { id: idOf(2), epoch: 7 };
    await sessions().saveSessionFilters(key, { put: [filterOf(1)], removed: [], generation: 0 });
    const third = await sessions().claimSession(claimOf({ ...named, newId: idOf(3) }));
    expect(third).toMatchObject({ status: "resumed", current: { session: { id: idOf(2), taken: positionZero } } });
  });
  it("refuses new stored sessions above a quota, and still resumes existing ones", async () => {
    const quotas: readonly StoredQuota[] = [{ of: "tenant", name: "acme", what: "sessions", max: 5 }];
    const claimOfAcme = (number: number) =>
      claimOf({ newId: idOf(number), key: `k${number}`, principal: `acme/p${number % 3}`, quotas, isStored: true });
    const claims = await Promise.all(
      Array.from({ length: 20 }, (_, index) => sessions().claimSession(claimOfAcme(index + 1))),
    );
    expect(claims.filter(({ status }) => status === "begun")).toHaveLength(5);
    expect(claims.filter(({ status }) => status === "over-quota")).toHaveLength(15);
    const begun = claims.findIndex(({ status }) => status === "begun") + 1;
    expect(await sessions().claimSession(claimOfAcme(begun))).toMatchObject({ status: "resumed" });
    const unstored = claimOf({ newId: idOf(30), key: "unstored", principal: "acme/x", quotas, isStored: false });
    expect(await sessions().claimSession(unstored)).toMatchObject({ status: "begun" });
    const other = claimOf({ newId: idOf(31), key: "other", principal: "acme0/x", isStored: true });
    expect(await sessions().claimSession(other)).toMatchObject({ status: "begun" });
  });
  it("with mayBegin false, refuses a claim for a stored session only if no stored session has its name", async () => {
    expect(await sessions().claimSession(claimOf({ mayBegin: false }))).toEqual({ status: "full" });
    expect(await sessions().claimSession(claimOf({ mayBegin: false, isStored: false }))).toMatchObject({
      status: "begun",
    });
    await begin(sessions());
    expect(await sessions().claimSession(claimOf({ mayBegin: false }))).toMatchObject({ status: "resumed" });
    const anew = claimOf({ mayBegin: false, isClean: true, newId: idOf(2) });
    expect(await sessions().claimSession(anew)).toMatchObject({ status: "begun", current: { id: idOf(2) } });
  });
  it("begins a new session if the earlier one lasted only as long as its connection", async () => {
    const former = await begin(sessions(), { expiryMs: 0 });
    const claimed = await sessions().claimSession(claimOf({ newId: idOf(2) }));
    expect(claimed).toMatchObject({ status: "begun", former, current: { id: idOf(2) } });
  });
  it("refuses a position that was read in another generation of the index", async () => {
    expect(await sessions().claimSession(claimOf({ generation: 1 }))).toEqual({ status: "rolled-back" });
    const begun = await begin(sessions());
    const change = { put: [filterOf(1)], removed: [], generation: 1 };
    expect(await sessions().saveSessionFilters(begun, change)).toBe("rolled-back");
  });
  it("gives each of several concurrent claims of a session its own epoch", async () => {
    await begin(sessions());
    const claims = Array.from({ length: 5 }, () => sessions().claimSession(claimOf()));
    const epochs = (await Promise.all(claims)).map((claimed: SessionClaimed) => {
      return claimed.status === "resumed" ? claimed.current.session.epoch : 0;
    });
    expect(epochs.toSorted((left, right) => left - right)).toEqual([8, 9, 10, 11, 12]);
  });
}

function testDueWills(sessions: () => SessionStore): void {
  const node = "00000000-0000-4000-9000-000000000001" as NodeId; // Any UUID is valid.

  it.each<[string, { first?: Partial<SessionClaim>; second?: Partial<SessionClaim>; detachedMs?: number }]>([
    ["has no delay", { first: { willDelayMs: 0 } }],
    ["has passed its delay", { detachedMs: 100 }],
    ["has a session that the claim ends", { second: { isClean: true } }],
    ["has a session that ended with its connection", { first: { expiryMs: 0 } }],
  ])(
    "keeps a row with a former will that %s, and the claim's owner has taken the row",
    async (_, { first, second, detachedMs }) => {
      const former = await begin(sessions(), { principal: "acme/x", ...first });
      if (detachedMs !== undefined) await sessions().detachSession(former, { ...claimOf(), ...first });
      await sessions().advanceSessionTime(group, detachedMs ?? 40);
      const claim = claimOf({ newId: idOf(2), principal: "acme/y", will: undefined, owner: node, ...second });
      const claimed = await sessions().claimSession(claim);
      if (!("dueWill" in claimed) || typeof claimed.dueWill !== "object") throw new Error("the will is not due");
      const { dueWill } = claimed;
      const time = detachedMs ?? 40;
      const end = { detachedAt: time, willDueAt: time, expiryMs: 0, owner: node };
      expect(dueWill).toMatchObject({ id: idOf(99), principal: "acme/x", will, ...end });
      expect(await sessions().findSession(idOf(99))).toEqual({ session: dueWill, filters: [] });
      expect(await sessions().listDueSessions(group, 9)).toEqual([]);
      await sessions().detachLost(group);
      expect(await sessions().listDueSessions(group, 9)).toEqual([{ id: idOf(99), epoch: dueWill.epoch + 1 }]);
    },
  );
  it.each<[string, Partial<SessionClaim>, number | undefined]>([
    ["whose delay has not passed", {}, undefined],
    ["of a connection whose delay would have passed", {}, 500],
    ["if there is none", { will: undefined, willDelayMs: 0 }, undefined],
  ])("keeps no row with a former will %s", async (_, first, connectedMs) => {
    await begin(sessions(), first);
    await sessions().advanceSessionTime(group, connectedMs ?? 0);
    expect(await sessions().claimSession(claimOf())).toMatchObject({ status: "resumed", dueWill: undefined });
    expect(await sessions().listSessions({ after: undefined, limit: 9 })).toHaveLength(1);
  });
  it("keeps one due will of a session name, and refuses no claim because of wills", async () => {
    const quotas: readonly StoredQuota[] = [{ of: "tenant", name: "acme", what: "sessions", max: 1 }];
    const order = { principal: "acme/x", quotas, mayBegin: false, willDelayMs: 0 };
    await begin(sessions(), { ...order, mayBegin: true });
    for (const number of [10, 11, 12]) {
      const claimed = await sessions().claimSession(claimOf({ ...order, newId: idOf(2), willId: idOf(number) }));
      const dueWill: unknown = number === 10 ? expect.objectContaining({ id: idOf(10) }) : "unstored";
      expect(claimed).toMatchObject({ status: "resumed", dueWill });
    }
    const anew = claimOf({ ...order, isClean: true, newId: idOf(2), willId: idOf(13) });
    expect(await sessions().claimSession(anew)).toMatchObject({ status: "begun", dueWill: "unstored" });
    const all = await sessions().listSessions({ after: undefined, limit: 9 });
    expect(all.map(({ session }) => session.id)).toEqual([idOf(2), idOf(10)]);
  });
  it("keeps no due will whose key is that of another client's session", async () => {
    await begin(sessions(), { key: "will c" });
    await begin(sessions(), { key: "c", newId: idOf(2), willDelayMs: 0 });
    const claimed = await sessions().claimSession(claimOf({ key: "c", newId: idOf(3) }));
    expect(claimed).toMatchObject({ status: "resumed", former: { id: idOf(2) }, dueWill: "unstored" });
    const all = await sessions().listSessions({ after: undefined, limit: 9 });
    expect(all.map(({ session }) => session.key)).toEqual(["will c", "c"]);
  });
  it("keeps no due will if there is no room, and still admits the claim", async () => {
    await begin(sessions(), { willDelayMs: 0 });
    const claimed = await sessions().claimSession(claimOf({ newId: idOf(2), mayKeepWill: false }));
    expect(claimed).toMatchObject({ status: "resumed", dueWill: "unstored" });
    expect(await sessions().listSessions({ after: undefined, limit: 9 })).toHaveLength(1);
  });
  it("publishes no will for a claim that is repeated with the same identifier because its answer was lost", async () => {
    await begin(sessions(), { willDelayMs: 0 });
    const again = await sessions().claimSession(claimOf({ isClean: true, willDelayMs: 0 }));
    expect(again).toMatchObject({ status: "begun", former: { id: idOf(1) }, dueWill: undefined });
    expect(await sessions().listSessions({ after: undefined, limit: 9 })).toHaveLength(1);
  });
}

function testState(sessions: () => SessionStore): void {
  it("keeps filters unchanged, and replaces a filter with the same text", async () => {
    const begun = await begin(sessions());
    const filters = [
      filterOf(1),
      filterOf(2, { qos: 0, isNoLocal: false, isRetainAsPublished: true, identifier: undefined }),
    ];
    expect(await sessions().saveSessionFilters(begun, { put: filters, removed: [], generation: 0 })).toBe("saved");
    expect((await sessions().findSession(begun.id))?.filters).toEqual(filters);
    const replaced = filterOf(1, { qos: 1, id: filterOf(3).id });
    const change = { put: [replaced], removed: [filterOf(2).filter], generation: 0 };
    expect(await sessions().saveSessionFilters(begun, change)).toBe("saved");
    expect((await sessions().findSession(begun.id))?.filters).toEqual([replaced]);
    expect(await sessions().findFilterOwner(replaced.id)).toMatchObject({ session: { id: begun.id } });
  });
  it.each([true, false])(
    "saves the states with the current epoch, and returns the other sessions (durable: %s)",
    async (isDurable) => {
      const begun = await begin(sessions());
      const other = await begin(sessions(), { newId: idOf(2), key: "other" });
      const positions = { cursor: toPosition(5, 0), taken: toPosition(6, 3), outside: toPosition(7, 1) };
      const state = { ...positions, inFlight: everyByte };
      const rows = [
        { ...other, ...state, epoch: 6 },
        { ...begun, ...state },
        { ...begun, ...state, id: idOf(9) },
      ];
      expect((await sessions().saveSessions(rows, { isDurable })).toSorted()).toEqual([idOf(2), idOf(9)]);
      expect((await sessions().findSession(idOf(1)))?.session).toMatchObject(state);
      expect((await sessions().findSession(idOf(2)))?.session).toEqual(other);
      expect(await sessions().saveSessions([], { isDurable })).toEqual([]);
    },
  );
  it("refuses every write under an earlier epoch", async () => {
    const begun = await begin(sessions());
    await sessions().claimSession(claimOf());
    expect(await sessions().saveSessionFilters(begun, { put: [], removed: [], generation: 0 })).toBe("refused");
    expect(await sessions().detachSession(begun, claimOf())).toBe(false);
    expect(await sessions().settleWill(begun)).toBe(false);
    expect(await sessions().removeSession(begun)).toBe(false);
    expect(await sessions().takeDueSession(begun, undefined)).toBeUndefined();
  });
  it("removes a filter under a new epoch, and then the session", async () => {
    const begun = await begin(sessions());
    await sessions().saveSessionFilters(begun, { put: [filterOf(1), filterOf(2)], removed: [], generation: 0 });
    expect(await sessions().removeSessionFilter(filterOf(1).id)).toBe(true);
    expect(await sessions().removeSessionFilter(filterOf(1).id)).toBe(false);
    const found = await sessions().findSession(begun.id);
    expect(found).toEqual({ session: { ...begun, epoch: begun.epoch + 1 }, filters: [filterOf(2)] });
    expect(await sessions().removeSession({ id: begun.id, epoch: begun.epoch + 1 })).toBe(true);
    expect(await sessions().listSessions({ after: undefined, limit: 9 })).toEqual([]);
  });
}

function testDue(sessions: () => SessionStore): void {
  it("lists a session when its will is due, and again when it has expired, by session time", async () => {
    const begun = await begin(sessions());
    expect(await sessions().advanceSessionTime(group, 50)).toBe(50);
    expect(await sessions().findSessionTime(group)).toBe(50);
    expect(await sessions().detachSession(begun, claimOf())).toBe(true);
    const detached = { ...begun, epoch: 8, detachedAt: 50, willDueAt: 150 };
    expect((await sessions().findSession(begun.id))?.session).toEqual(detached);
    await sessions().advanceSessionTime(group, 99);
    await sessions().advanceSessionTime(otherGroup, 99_999);
    expect(await sessions().listDueSessions(group, 9)).toEqual([]);
    await sessions().advanceSessionTime(group, 1);
    expect(await sessions().listDueSessions(group, 9)).toEqual([{ id: begun.id, epoch: 8 }]);
    expect(await sessions().takeDueSession(detached, undefined)).toEqual({ ...detached, epoch: 9 });
    expect(await sessions().settleWill({ id: begun.id, epoch: 9 })).toBe(true);
    expect(await sessions().listDueSessions(group, 9)).toEqual([]);
    await sessions().advanceSessionTime(group, 900);
    expect(await sessions().listDueSessions(group, 9)).toEqual([{ id: begun.id, epoch: 9 }]);
  });
  it("lists due sessions, longest due first, and omits connected ones", async () => {
    for (const number of [1, 2, 3, 4]) {
      const session = await begin(sessions(), { newId: idOf(number), key: String(number), will: undefined });
      if (number < 4)
        await sessions().detachSession(session, { ...claimOf({ will: undefined }), expiryMs: 100 - number });
    }
    await sessions().advanceSessionTime(group, 1_000);
    expect((await sessions().listDueSessions(group, 2)).map(({ id }) => id)).toEqual([idOf(3), idOf(2)]);
  });
  it("lists a group's detached sessions, longest detached first, and counts them", async () => {
    for (const number of [1, 2, 3, 4]) {
      const changes = { newId: idOf(number), key: String(number), groupId: number === 4 ? otherGroup : group };
      const session = await begin(sessions(), changes);
      if (number !== 2) await sessions().detachSession(session, claimOf());
      await sessions().advanceSessionTime(group, 10);
    }
    const keys = [1, 3].map((number) => ({ id: idOf(number), epoch: 8 }));
    expect(await sessions().listDetached(group, 9)).toEqual(keys);
    expect(await sessions().listDetached(group, 1)).toEqual(keys.slice(0, 1));
    expect(await sessions().countDetached(group)).toBe(2);
    expect(await sessions().countDetached(otherGroup)).toBe(1);
  });
  it("ends an expired session when a connection claims it", async () => {
    const begun = await begin(sessions());
    await sessions().detachSession(begun, claimOf());
    await sessions().advanceSessionTime(group, 1_000);
    const claimed = await sessions().claimSession(claimOf({ newId: idOf(2) }));
    expect(claimed).toMatchObject({ status: "begun", former: { id: begun.id, will }, current: { id: idOf(2) } });
  });
  it("detachLost detaches a group's sessions without a live owner once", async () => {
    const node = "00000000-0000-4000-9000-000000000001" as NodeId; // Any UUID is valid.
    const lost = await begin(sessions());
    const ofNode = await begin(sessions(), { newId: idOf(2), key: "2", owner: node });
    await sessions().detachLost(otherGroup);
    expect((await sessions().findSession(lost.id))?.session).toEqual(lost);
    await sessions().detachLost(group);
    const change = { detachedAt: 0, willDueAt: 100, owner: undefined, epoch: 8 };
    expect((await sessions().findSession(lost.id))?.session).toEqual({ ...lost, ...change });
    expect((await sessions().findSession(ofNode.id))?.session).toEqual({ ...ofNode, ...change });
    await sessions().detachLost(group);
    expect((await sessions().findSession(lost.id))?.session).toEqual({ ...lost, ...change });
  });
}

function testRollBack(store: () => Store): void {
  it("moves only positions after the block, to the end of the block", async () => {
    const { sessions } = store();
    const begun = await begin(sessions);
    const ahead = { ...begun, cursor: toPosition(2, 1), taken: toPosition(6, 0), inFlight: everyByte };
    await sessions.saveSessions([ahead], { isDurable: true });
    const second = await begin(sessions, { newId: idOf(3), key: "second" });
    const outside = { ...second, outside: toPosition(5, 2) };
    await sessions.saveSessions([outside], { isDurable: true });
    const filters = [filterOf(1, { startsAfter: toPosition(2, 0) }), filterOf(2, { startsAfter: toPosition(5, 0) })];
    await sessions.saveSessionFilters(begun, { put: filters, removed: [], generation: 0 });
    const other = await begin(sessions, { newId: idOf(2), groupId: otherGroup });
    await store().rollBack(group, { number: 4, hash: hashOf(4) });
    const found = await sessions.findSession(begun.id);
    expect(found?.session).toEqual({ ...ahead, taken: endOfBlock(4) });
    expect((await sessions.findSession(second.id))?.session).toEqual({ ...outside, outside: endOfBlock(4) });
    expect(found?.filters.map(({ startsAfter }) => startsAfter)).toEqual([toPosition(2, 0), endOfBlock(4)]);
    await store().rollBack(group, undefined);
    expect((await sessions.findSession(begun.id))?.session).toMatchObject({
      cursor: toPosition(0, 0),
      taken: toPosition(0, 0),
    });
    expect((await sessions.findSession(other.id))?.session).toEqual(other);
  });
}

function testOwners(store: () => Store): void {
  it("counts by owner: subscriptions in any state, and sessions that have a connection", async () => {
    const { sessions } = store();
    const [one, other] = ["node-1" as NodeId, "node-2" as NodeId];
    expect(await store().countOwned()).toEqual([]);
    await store().insertSubscription(subscriptionOf(1, { owner: one }), 0);
    await store().insertSubscription(subscriptionOf(2, { owner: one, state: "suspended" }), 0);
    await store().insertSubscription(subscriptionOf(3), 0);
    await begin(sessions, { owner: one });
    await begin(sessions, { newId: idOf(2), key: "second", owner: other });
    const gone = await begin(sessions, { newId: idOf(3), key: "third", owner: other });
    await sessions.detachSession(gone, gone);
    expect(new Set(await store().countOwned())).toEqual(
      new Set([
        { owner: one, subscriptions: 2, sessions: 1 },
        { owner: other, subscriptions: 0, sessions: 1 },
        { owner: undefined, subscriptions: 1, sessions: 0 },
      ]),
    );
  });
}
