import { Client } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { endOfBlock, positionZero, toPosition } from "../../../domain/position.ts";
import type { NodeId } from "../../../domain/node.ts";
import { nothingFailed } from "../../../domain/subscription.ts";
import type { Claim, GroupLease } from "../../../ports/coordinator.ts";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import type { StoredSession } from "../../../ports/session-store.ts";
import { keyRowOf } from "../../../ports/publish-keys.contract.ts";
import { claimOf, filterOf, idOf } from "../../../ports/session-examples.contract.ts";
import { IndexDamagedError, LeaseLostError } from "../../../ports/store.ts";
import { alpha, group, hashOf, history, otherGroup, subscriptionOf } from "../../../ports/store-examples.contract.ts";
import { oneNode, otherNode, takeLease } from "../../../ports/store-shared.contract.ts";
import type { SqlStore } from "../sql-store.ts";
import { createPostgresCoordinator, type PostgresCoordinator } from "./coordination/postgres-coordinator.ts";
import { createPostgresStore } from "./postgres-store.ts";
import { hasPostgres, type PostgresServer, startPostgres, titleOf } from "./testing/postgres-server.ts";
import { waitUntilBlocked } from "./testing/wait-until-blocked.ts";

const lastPosition = toPosition(6, 0);
const two = { number: 2, hash: hashOf(2) };
/** A node that is no member. */
const goneNode = "00000000-0000-4000-9000-000000000009" as NodeId; // Any UUID is valid.

// Each test blocks a call at the critical statement by locks of a separate session.
describe.runIf(hasPostgres)(titleOf("nodes that change a PostgreSQL database at the same time"), () => {
  let server: PostgresServer;
  let one: SqlStore;
  let other: SqlStore;
  let coordinator: PostgresCoordinator;
  let holder: Client;
  let lease: GroupLease;
  let address: string;
  beforeAll(async () => {
    server = await startPostgres();
  });
  beforeEach(async () => {
    const url = await server.createDatabase();
    address = url;
    one = createPostgresStore({ url });
    other = createPostgresStore({ url });
    await Promise.all([one.start(), other.start()]);
    coordinator = createPostgresCoordinator({ url });
    lease = await takeLease(coordinator, oneNode);
    holder = new Client({ connectionString: url });
    await holder.connect();
  });
  afterEach(async () => {
    await holder.end();
    await Promise.all([one, other, coordinator].map(async (part) => part.stop()));
  });
  afterAll(async () => server.remove());

  it("taking the lease waits for blocks in progress; the store refuses later blocks of the former holder", async () => {
    await holdUp("lock table batches in exclusive mode");
    const applying = one.applyBlocks(group, history.slice(0, 3), { isFinal: false, lease });
    await waitUntilBlocked(server);
    let next: GroupLease | undefined;
    const takingOver = coordinator.leave(oneNode).then(async () => (next = await takeLease(coordinator, otherNode)));
    await Promise.race([waitUntilBlocked(server, 2), takingOver]);
    expect(next).toBeUndefined();
    await holder.query("rollback");
    await applying;
    next = await takingOver;
    expect(await other.findHead(group)).toMatchObject({ blockNumber: 4 });
    await expect(one.applyBlocks(group, history.slice(3), { isFinal: false, lease })).rejects.toThrow(LeaseLostError);
    await other.applyBlocks(group, history.slice(3), { isFinal: false, lease: next });
  });

  it("a node can record a publish key while another node releases it", async () => {
    const mine = keyRowOf(1, { token: keyRowOf(9).token });
    await other.recordPublishKeys([keyRowOf(1)]);
    const columns = "token, topic, after_position, digest, sender, recorded_at, checksum";
    const insert = `insert into publish_keys (group_id, scope, key, ${columns})`;
    await holder.query("begin");
    await holder.query(`${insert} select group_id, scope, 'key-2', ${columns} from publish_keys`); // Blocks the second key.
    const recording = one.recordPublishKeys([mine, keyRowOf(2)]);
    await waitUntilBlocked(server);
    await other.releasePublishKeys([keyRowOf(1)]);
    await holder.query("rollback");
    expect(await recording).toEqual([]);
    expect(await one.findPublishKey(mine)).toEqual(mine);
  });

  it("a node that starts with a damaged index waits for changes in progress before it empties the index", async () => {
    await one.applyBlocks(group, history, { isFinal: false, lease });
    await holder.query("update groups set checksum = checksum + 1");
    const hints: string[] = [];
    holder.on("notification", ({ payload = "" }) => hints.push(payload));
    await holder.query("listen stele");
    await holder.query("begin");
    await holder.query("select pg_advisory_xact_lock(hashtextextended($1, 0))", [`stele index ${group}`]);
    await other.stop();
    const starting = other.start().then(() => "started");
    expect(await Promise.race([waitUntilBlocked(server).then(() => "waits"), starting])).toBe("waits");
    await holder.query("rollback");
    await starting;
    expect(await other.findHead(group)).toBeUndefined();
    await holder.query("select 1");
    expect(hints).toContainEqual(expect.stringContaining("index")); // So that the nodes that watch the index notice it at once.
  });

  it("a node that starts with an intact index does not wait for changes of the index in progress", async () => {
    await one.applyBlocks(group, history, { isFinal: false, lease });
    await holdUp(`select pg_advisory_xact_lock(hashtextextended('stele index ${group}', 0))`);
    await other.stop();
    await other.start();
    await holder.query("rollback");
    expect(await other.findHead(group)).toEqual(await one.findHead(group));
  });

  it("a rollback waits for an insert in progress and moves the new subscription's cursor back", async () => {
    await one.applyBlocks(group, history, { isFinal: false, lease });
    await holdUp("lock table subscriptions in share mode");
    const inserting = other.insertSubscription(subscriptionOf(1, { cursor: lastPosition, owner: otherNode }), 0);
    await waitUntilBlocked(server);
    const rollingBack = one.rollBack(group, two, lease);
    await Promise.race([waitUntilBlocked(server, 2), rollingBack]);
    await holder.query("rollback");
    expect(await inserting).toBe("inserted");
    await rollingBack;
    expect(await other.listSubscriptions()).toMatchObject([{ cursor: endOfBlock(2), epoch: 1 }]);
  });

  it("inserting a subscription during a rollback returns rolled-back", async () => {
    await one.applyBlocks(group, history, { isFinal: false, lease });
    await holdUp("lock table vanished in exclusive mode");
    const rollingBack = one.rollBack(group, two, lease);
    await waitUntilBlocked(server);
    const inserting = other.insertSubscription(subscriptionOf(1, { cursor: lastPosition, owner: otherNode }), 0);
    await Promise.race([waitUntilBlocked(server, 2), inserting]);
    await holder.query("rollback");
    await rollingBack;
    expect(await inserting).toBe("rolled-back");
    expect(await other.listSubscriptions()).toEqual([]);
  });

  it("calls that wait for a rollback of their group leave connections for other groups", async () => {
    await one.applyBlocks(group, history, { isFinal: false, lease });
    await holdUp("lock table vanished in exclusive mode");
    const rollingBack = one.rollBack(group, two, lease);
    await waitUntilBlocked(server);
    let settled = 0;
    const claims = Array.from({ length: 30 }, async (_, number) => {
      const claim = claimOf({ newId: idOf(number), key: `client ${number}`, position: positionZero });
      const claimed = await other.sessions.claimSession(claim);
      settled += 1;
      return claimed.status;
    });
    await waitUntilBlocked(server, 2);
    for (let reads = 0; reads < 20; reads += 1) await other.findHead(otherGroup);
    expect(settled).toBe(0);
    await holder.query("rollback");
    await rollingBack;
    expect(new Set(await Promise.all(claims))).toEqual(new Set(["begun"]));
  });

  it("a rollback sends the hints of 20 sessions in one statement, so that it holds its locks only briefly", async () => {
    await one.applyBlocks(group, history, { isFinal: false, lease });
    for (let number = 1; number <= 20; number += 1) await beginSession(number);
    const hints: string[] = [];
    const listener = new Client({ connectionString: address });
    await listener.connect();
    listener.on("notification", ({ payload = "" }) => hints.push(payload));
    await listener.query("listen stele");
    const sending = vi.spyOn(Client.prototype, "query");
    await one.rollBack(group, two, lease);
    const statements = sending.mock.calls.filter(([query]) => JSON.stringify(query).includes("pg_notify"));
    sending.mockRestore();
    await listener.query("select 1");
    await listener.end();
    expect(hints.filter((hint) => hint.includes("session"))).toHaveLength(20);
    expect(statements).toHaveLength(2);
  });

  it("a rollback waits for a progress write in progress and moves the cursor back", async () => {
    const kept = await withSubscription();
    await holdUp(`select from subscriptions where id = '${kept.id}' for update`);
    const saving = other.saveProgress([kept]);
    await waitUntilBlocked(server);
    const rollingBack = one.rollBack(group, two, lease);
    await Promise.race([waitUntilBlocked(server, 2), rollingBack]);
    await holder.query("rollback");
    expect(await saving).toEqual([]);
    await rollingBack;
    expect(await other.listSubscriptions()).toMatchObject([{ cursor: endOfBlock(2), epoch: 1 }]);
  });

  it("a rollback waits for a session's save in progress and moves the session back", async () => {
    await one.applyBlocks(group, history, { isFinal: false, lease });
    const session = await beginSession(1, otherNode);
    await holdUp(`select from sessions where session_id = '${session.id}' for update`);
    const state = { ...session, cursor: lastPosition, taken: lastPosition };
    const saving = other.sessions.saveSessions([state], { isDurable: false });
    await waitUntilBlocked(server);
    const rollingBack = one.rollBack(group, two, lease);
    await Promise.race([waitUntilBlocked(server, 2), rollingBack]);
    await holder.query("rollback");
    expect(await saving).toEqual([]);
    await rollingBack;
    const found = await other.sessions.findSession(session.id);
    const end = endOfBlock(2);
    expect(found?.session).toMatchObject({ cursor: end, taken: end, epoch: session.epoch + 1 });
  });

  it("a progress write writes its other rows before it waits for a locked row", async () => {
    const [first, second] = [await withSubscription(1), subscriptionOf(2)];
    await other.insertSubscription({ ...second, cursor: toPosition(2, 0), owner: otherNode }, 0);
    await holdUp(`select from subscriptions where id = '${first.id}' for update`);
    const saving = other.saveProgress([first, { ...first, id: second.id }, { ...first, id: subscriptionOf(3).id }]);
    await waitUntilBlocked(server);
    expect(await one.findSubscription(second.id)).toMatchObject({ cursor: lastPosition });
    expect(await one.findSubscription(first.id)).toMatchObject({ cursor: toPosition(2, 0) });
    await holder.query("rollback");
    expect(await saving).toEqual([subscriptionOf(3).id]);
    expect(await one.findSubscription(first.id)).toMatchObject({ cursor: lastPosition });
  });

  it("a progress write during a rollback is refused", async () => {
    const kept = await withSubscription();
    await holdUp(`select from subscriptions where id = '${kept.id}' for update`);
    const rollingBack = one.rollBack(group, two, lease);
    await waitUntilBlocked(server);
    const saving = other.saveProgress([kept]);
    await Promise.race([waitUntilBlocked(server, 2), saving]);
    await holder.query("rollback");
    await rollingBack;
    expect(await saving).toEqual([kept.id]);
    expect(await other.listSubscriptions()).toMatchObject([{ cursor: toPosition(2, 0), epoch: 1 }]);
  });

  it("a rebuild of the database's indexes waits longer for a lock than a statement may", async () => {
    await one.applyBlocks(group, history, { isFinal: false, lease });
    const hasty = createPostgresStore({ url: address, session: { lockMsMax: 1 } });
    onTestFinished(async () => hasty.stop());
    await hasty.start();
    await holder.query("delete from batches where first_sequence = 4");
    await holdUp("lock table batches in row exclusive mode");
    const found = hasty.findBatch(group, { topic: alpha, sequence: 5 }).catch((error: unknown) => error);
    await Promise.race([waitUntilBlocked(server), found]);
    await holder.query("rollback");
    expect(await found).toBeInstanceOf(IndexDamagedError);
  });

  it("session time adds both of two concurrent advances", async () => {
    await one.sessions.advanceSessionTime(group, 100);
    await holdUp("select from session_times for update");
    const advancing = [one, other].map((store, index) => store.sessions.advanceSessionTime(group, 10 + 10 * index));
    await waitUntilBlocked(server, 2);
    await holder.query("rollback");
    await Promise.all(advancing);
    expect(await one.sessions.findSessionTime(group)).toBe(130);
  });

  it("no event is left of a share that ends while it gives an event to a former member", async () => {
    const filter = parseTopicFilter("$share/s/a");
    const [former, last] = [await beginSession(1), await beginSession(2)];
    const put = [filterOf(1, { filter, startsAfter: positionZero })];
    await other.sessions.saveSessionFilters(last, { put, removed: [], generation: 0 });
    const share = await one.shares.findShare(group, filter);
    if (share === undefined) throw new Error("the share has a member");
    await holdUp(`insert into share_events (share_id, position, topic, session_id, session_epoch, given_epoch, checksum)
      values ('${share.id}', ${lastPosition}, 'a', '', 0, 0, 0)`); // Blocks an insert of the same event.
    const gifts = [{ topic: alpha, position: lastPosition, to: former }];
    const giving = one.shares.takeShared({ ...share, cursor: lastPosition, gifts, dropped: [] });
    await waitUntilBlocked(server);
    const leaving = other.sessions.saveSessionFilters(last, { put: [], removed: [filter], generation: 0 });
    await waitUntilBlocked(server, 2);
    await holder.query("rollback");
    expect(await Promise.all([giving, leaving])).toEqual(["taken", "saved"]);
    expect((await holder.query("select from share_events")).rowCount).toBe(0);
  });

  it("a session stays intact if two nodes remove the same one of its filters", async () => {
    const session = await beginSession(1);
    const put = [filterOf(1, { startsAfter: positionZero }), filterOf(2, { startsAfter: positionZero })];
    await one.sessions.saveSessionFilters(session, { put, removed: [], generation: 0 });
    await holdUp("select from sessions for update");
    const removing = [one, other].map((store) => store.sessions.removeSessionFilter(filterOf(1).id));
    await waitUntilBlocked(server, 2);
    await holder.query("rollback");
    expect(new Set(await Promise.all(removing))).toEqual(new Set([true, false]));
    expect(await one.sessions.findSession(idOf(1))).toMatchObject({ filters: [put[1]] });
  });

  it("a claim returns `taken` if another node meanwhile stores a will under the claimed key, and the next claim succeeds", async () => {
    await one.sessions.claimSession(claimOf({ key: "c", willDelayMs: 0 }));
    const quota = { of: "principal", name: "x", what: "sessions", max: 9 } as const;
    await holdUp("select pg_advisory_xact_lock(hashtextextended('stele quota sessions principal x', 0))");
    const claim = claimOf({ key: "will c", newId: idOf(2), willId: idOf(98), quotas: [quota] });
    const claiming = one.sessions.claimSession(claim);
    await waitUntilBlocked(server);
    const resumed = await other.sessions.claimSession(claimOf({ key: "c", newId: idOf(3) }));
    expect(resumed).toMatchObject({ dueWill: { key: "will c" } });
    await holder.query("rollback");
    expect(await claiming).toEqual({ status: "taken" });
    expect(await one.sessions.claimSession(claim)).toMatchObject({ status: "begun", dueWill: { key: "will will c" } });
  });

  it("counts an owner's rows for one insert at a time, even if two nodes have different limits for the owner", async () => {
    const quota = { of: "principal", name: "x", what: "subscriptions" } as const;
    const insert = (store: SqlStore, max: number) =>
      store.insertSubscription(subscriptionOf(max, { principal: "x" }), 0, [{ ...quota, max }]);
    await holdUp("lock table subscriptions in exclusive mode");
    const first = insert(one, 2);
    await waitUntilBlocked(server);
    const second = insert(other, 1);
    await waitUntilBlocked(server, 2);
    await holder.query("rollback");
    expect(await Promise.all([first, second])).toMatchObject(["inserted", { status: "over-quota" }]);
  });

  it("taking over a subscription waits for a rollback in progress, even if the cursor need not move", async () => {
    const { id } = subscriptionOf(1);
    const waitedFor = await withSubscription(2);
    await one.insertSubscription(subscriptionOf(1, { cursor: toPosition(2, 0), owner: oneNode }), 0);
    await coordinator.join({ id: otherNode, address: "other.example:8080" }, 60_000);
    await holdUp(`select from subscriptions where id = '${waitedFor.id}' for update`);
    const rollingBack = one.rollBack(group, two, lease);
    await waitUntilBlocked(server);
    await coordinator.leave(oneNode);
    let claim: Claim | undefined;
    const takingOver = coordinator.claim(id, otherNode).then((answer) => (claim = answer));
    await Promise.race([waitUntilBlocked(server, 2), takingOver]);
    expect(claim).toBeUndefined();
    await holder.query("rollback");
    await Promise.all([rollingBack, takingOver]);
    expect(await other.findSubscription(id)).toMatchObject({ owner: otherNode, cursor: toPosition(2, 0), epoch: 1 });
  });

  it("a node's end does not wait for a rollback that has locked its sessions; a sweep detaches them later", async () => {
    await one.applyBlocks(group, history, { isFinal: false, lease });
    await coordinator.join({ id: otherNode, address: "other.example:8080" }, 60_000);
    const session = await beginSession(1, otherNode);
    const free = await beginSession(2, otherNode);
    await holdUp(`select from sessions where session_id = '${session.id}' for update`);
    await coordinator.leave(otherNode);
    expect(await one.sessions.findSession(free.id)).toMatchObject({ session: { owner: undefined } });
    await holder.query("rollback");
    await one.sessions.detachLost(group);
    const found = await one.sessions.findSession(session.id);
    expect(found?.session).toMatchObject({ owner: undefined, detachedAt: 0, epoch: session.epoch + 1 });
  });

  it("a sweep of lost sessions keeps a session that a node claims while the sweep waits, even if the node has just joined", async () => {
    const session = await beginSession(1, goneNode);
    await holdUp(`update sessions set owner = '${otherNode}', epoch = epoch + 1, state_check = state_check + 7`); // As a claim does.
    const sweeping = one.sessions.detachLost(group);
    await waitUntilBlocked(server);
    await coordinator.join({ id: otherNode, address: "other.example:8080" }, 60_000);
    await holder.query("commit");
    await sweeping;
    const found = await one.sessions.findSession(session.id);
    expect(found?.session).toEqual({ ...session, owner: otherNode, epoch: session.epoch + 1 });
  });

  it("the end of a node detaches a thousand of its sessions, even with a bad query plan; a sweep detaches the others", async () => {
    for (const way of ["hashjoin", "mergejoin", "hashagg", "sort", "material"]) // Only nested loops are left, which bad statistics may also cause.
      await holder.query(`alter database ${new URL(address).pathname.slice(1)} set enable_${way} = off`);
    const late = createPostgresCoordinator({ url: address }); // Its new connections have these settings.
    onTestFinished(async () => late.stop());
    await coordinator.join({ id: otherNode, address: "other.example:8080" }, 60_000);
    await beginSession(1, otherNode);
    await holder.query(`insert into sessions select (jsonb_populate_record(sessions,
      jsonb_build_object('session_id', gen_random_uuid(), 'key', number))).* from sessions, generate_series(2, 2500) as number`);
    await late.leave(otherNode);
    expect(await one.sessions.countDetached(group)).toBe(1_000);
    await one.sessions.detachLost(group);
    expect(await one.sessions.countDetached(group)).toBe(2_500);
  });

  async function beginSession(number: number, owner?: NodeId): Promise<StoredSession> {
    const claim = claimOf({ newId: idOf(number), key: `client ${number}`, position: positionZero, owner });
    const claimed = await one.sessions.claimSession(claim);
    if (claimed.status !== "begun" || claimed.current === undefined)
      throw new Error(`the session is ${claimed.status}`);
    return claimed.current;
  }

  async function holdUp(statement: string): Promise<void> {
    await holder.query("begin");
    await holder.query(statement);
  }

  /** Inserts a subscription of the other node with its cursor in block 2. Returns the progress that moves the cursor further. */
  async function withSubscription(number = 1) {
    await one.applyBlocks(group, history, { isFinal: false, lease });
    const { id, epoch } = subscriptionOf(number);
    await other.insertSubscription(subscriptionOf(number, { cursor: toPosition(2, 0), owner: otherNode }), 0);
    return {
      id,
      epoch,
      cursor: lastPosition,
      notifiedCount: 9,
      notifiedAt: 1,
      ...nothingFailed,
    };
  }
});
