import { join } from "node:path";
import { isBrokerError } from "@stele/wire";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { NodeId } from "../../../../domain/node.ts";
import type { SubscriptionId } from "../../../../domain/subscription.ts";
import { silentLogger } from "../../../../lib/logger.ts";
import { type Hint, hintsAfterLoss } from "../../../../ports/coordinator.ts";
import { a, addressOf, b, both } from "../../../../ports/coordinator-scenario.contract.ts";
import { group, subscriptionOf } from "../../../../ports/store-examples.contract.ts";
import { parsePostgresAddress } from "../address.ts";
import { createPostgresStore } from "../postgres-store.ts";
import { hasPostgres, type PostgresServer, startPostgres, titleOf } from "../testing/postgres-server.ts";
import { startRelay } from "../testing/relay.ts";
import { HintListener } from "./hint-listener.ts";
import { membershipLimits } from "./limits.ts";
import { createPostgresCoordinator, type PostgresCoordinator } from "./postgres-coordinator.ts";

const unreachable = expect.objectContaining({ name: "BrokerError", code: 200207, retry: true });
const lastsMs = 600_000;
const renewal = { lastsMs, groups: both };
/** The default length of a membership, in milliseconds. */
const membershipMs = 6_000;

describe.runIf(hasPostgres)(titleOf("a PostgreSQL coordinator whose server fails"), () => {
  let server: PostgresServer;
  let url: string;
  const ends: (() => Promise<unknown>)[] = [];
  beforeAll(async () => {
    server = await startPostgres();
  });
  beforeEach(async () => {
    url = await server.createDatabase();
    const store = createPostgresStore({ url });
    await store.start();
    ends.push(async () => store.stop());
  });
  afterEach(async () => {
    for (const end of ends.splice(0).toReversed()) await end();
  });
  afterAll(async () => server.remove());

  it.each(["fast", "kill"] as const)(
    "reconnects after a restart (%s), with the same member and lease, and receives hints again",
    async (way) => {
      const coordinator = await joined();
      const lease = await coordinator.takeLease(group, a);
      const heard = await listen(coordinator);
      await server.halt(way);
      await expect(callUntilFailed(async () => coordinator.renew(a, renewal))).rejects.toEqual(unreachable);
      await expect(coordinator.renew(a, renewal)).rejects.toEqual(unreachable);
      heard.length = 0;
      await server.resume();
      expect(await callUntilAnswered(async () => coordinator.renew(a, renewal))).toBe(true);
      expect(await callUntilAnswered(async () => coordinator.takeLease(group, a))).toEqual(lease);
      await until(() => heard.some(({ kind }) => kind === "nodes"));
      heard.length = 0;
      await coordinator.join({ id: b, address: addressOf(b) }, lastsMs);
      await until(() => heard.length > 0);
      expect(heard).toEqual([{ kind: "nodes" }]);
    },
  );

  it("two hanging renewals leave a third of the membership's time", () => {
    const { session, waits, answerDelayMsMax } = membershipLimits;
    const longest = Math.max(session.statementMsMax, waits.connectMsMax) + answerDelayMsMax;
    expect(2 * longest).toBeLessThanOrEqual((membershipMs * 2) / 3);
  });

  it("on a silently cut connection, a renewal times out before other calls, and the next renewal uses a new connection", async () => {
    const relay = await startRelay(join(server.folder, ".s.PGSQL.5432"));
    url = `postgres://stele@127.0.0.1:${relay.port}${new URL(url).pathname}`;
    const coordinator = await joined();
    await coordinator.listOwned(a);
    relay.freeze();
    const other = await expectRenewalTimesOutFirst(coordinator);
    expect(await coordinator.renew(a, renewal)).toBe(true);
    await other.ended;
    await Promise.all(ends.splice(0).map(async (end) => end()));
    relay.close();
  });

  it("a renewal times out before other calls if another transaction blocks both", async () => {
    const coordinator = await joined();
    const other = await session();
    await other.query("begin");
    await other.query("lock table nodes");
    const held = await expectRenewalTimesOutFirst(coordinator);
    await other.query("rollback");
    await held.ended;
    expect(await coordinator.renew(a, renewal)).toBe(true);
  });

  it("a renewal does not wait for other calls that are blocked", async () => {
    const coordinator = await joined();
    const other = await session();
    await other.query("begin");
    await other.query("lock table subscriptions");
    const held = Array.from({ length: 5 }, async () => coordinator.listOwned(a).then(() => (isHeld = false)));
    let isHeld = true;
    expect(await coordinator.renew(a, renewal)).toBe(true);
    expect(isHeld).toBe(true);
    await other.query("rollback");
    await Promise.allSettled(held);
  });

  it("a member with a renewal in progress neither counts as dead nor blocks others", async () => {
    const coordinator = await joined();
    const lease = await coordinator.takeLease(group, a);
    await coordinator.join({ id: b, address: addressOf(b) }, lastsMs);
    const other = await session();
    await other.query("update nodes set expires_at = 0 where node_id = $1", [a]);
    await other.query("begin");
    await other.query("update nodes set expires_at = $2 where node_id = $1", [a, Date.now() + lastsMs]);
    expect(await coordinator.takeLease(group, b)).toBeUndefined();
    await other.query("commit");
    expect(await coordinator.takeLease(group, a)).toEqual(lease);
    await other.query("update nodes set expires_at = 0 where node_id = $1", [a]);
    expect(await coordinator.takeLease(group, b)).toMatchObject({ nodeId: b });
  });

  it("if the database's clock is set back by hours, live members stay, and a dead one is gone after ten minutes", async () => {
    const coordinator = await joined();
    await coordinator.join({ id: b, address: addressOf(b) }, lastsMs);
    const lease = await coordinator.takeLease(group, b);
    await passTime(-2 * 3_600_000);
    await coordinator.balance(a);
    expect((await coordinator.listNodes()).map(({ id }) => id)).toEqual([a, b]);
    for (const id of [a, b]) expect(await coordinator.renew(id, renewal)).toBe(true);
    expect(await coordinator.takeLease(group, b)).toEqual(lease);
    await passTime(-2 * 3_600_000);
    await coordinator.balance(a);
    await passTime(lastsMs / 2);
    expect(await coordinator.renew(a, renewal)).toBe(true);
    await passTime(lastsMs / 2);
    expect(await coordinator.takeLease(group, a)).toMatchObject({ nodeId: a });
  });

  it("if the database's clock is set back by hours, a node can join at the address of a dead one after ten minutes", async () => {
    const coordinator = await joined();
    await passTime(-2 * 3_600_000);
    expect(await coordinator.join({ id: b, address: addressOf(a) }, lastsMs)).toBe("taken");
    await passTime(lastsMs);
    expect(await coordinator.join({ id: b, address: addressOf(a) }, lastsMs)).toBe("joined");
  });

  it("a node that asks for a held lease does not wait while the lease's row is locked", async () => {
    const coordinator = await joined();
    await coordinator.takeLease(group, a);
    await coordinator.join({ id: b, address: addressOf(b) }, lastsMs);
    const other = await session();
    await other.query("begin");
    await other.query("select from group_leases for share");
    expect(await coordinator.takeLease(group, b)).toBeUndefined();
    await other.query("rollback");
  });

  it("a claim of a row that another transaction locks returns asked, and succeeds after the lock is free", async () => {
    const coordinator = await joined();
    const { id } = subscriptionOf(1);
    const other = await session();
    await insertOne();
    await other.query("begin");
    await other.query("select from subscriptions for update");
    expect(await coordinator.claim(id, a)).toEqual({ status: "asked", owner: undefined });
    await other.query("rollback");
    expect(await coordinator.claim(id, a)).toMatchObject({ status: "owned", subscription: { id, owner: a } });
  });

  it("balancing reads no subscriptions while the nodes are unchanged, and reads them after a change", async () => {
    const coordinator = await joined();
    const nothing = { assigned: 0, requested: 0 };
    expect(await coordinator.balance(a)).toMatchObject(nothing);
    const other = await session();
    await other.query("begin");
    await other.query("lock table subscriptions");
    for (let call = 0; call < 3; call += 1) expect(await coordinator.balance(a)).toEqual(nothing);
    await coordinator.renew(a, { lastsMs, groups: [group] });
    await expect(coordinator.balance(a)).rejects.toEqual(unreachable);
    await other.query("rollback");
    expect(await coordinator.balance(a)).toMatchObject(nothing);
  });

  it("balance assigns a new subscription by its fifth call, although no node has joined or left", async () => {
    const coordinator = await joined();
    await coordinator.balance(a);
    await insertOne();
    const given: number[] = [];
    for (let call = 0; call < 5; call += 1) given.push((await coordinator.balance(a)).assigned);
    expect(given).toEqual([0, 0, 0, 0, 1]);
    expect(await coordinator.balance(a)).toMatchObject({ assigned: 0, requested: 0 });
  });

  it("the next call of balance assigns the subscriptions of an expired node, whoever removed the node", async () => {
    const coordinator = await joined();
    await coordinator.join({ id: b, address: addressOf(b) }, lastsMs);
    await coordinator.renew(b, renewal);
    await insertOne();
    await coordinator.claim(subscriptionOf(1).id, b);
    expect(await coordinator.balance(a)).toMatchObject({ assigned: 0, requested: 0 });
    await (await session()).query("update nodes set expires_at = 0 where node_id = $1", [b]);
    await coordinator.takeLease(group, a); // Removes expired members.
    expect(await coordinator.balance(a)).toMatchObject({ assigned: 1, requested: 0 });
  });

  it("hints arrive again after their connection stopped answering", async () => {
    const relay = await startRelay(join(server.folder, ".s.PGSQL.5432"));
    const coordinator = await joined();
    const address = parsePostgresAddress(`postgres://stele@127.0.0.1:${relay.port}${new URL(url).pathname}`);
    const heard: Hint[] = [];
    const limits = { checkEveryMs: 50, answerMsMax: 200 };
    const listener = new HintListener({ address, logger: silentLogger, onHint: (hint) => heard.push(hint), limits });
    await until(() => heard.length === 2);
    relay.freeze();
    await until(() => heard.length === 4);
    expect(heard).toEqual([...hintsAfterLoss, ...hintsAfterLoss]);
    await coordinator.join({ id: b, address: addressOf(b) }, lastsMs);
    await until(() => heard.length === 5);
    relay.freeze();
    await listener.stop();
    relay.close();
  });

  it("a notification that is not a hint is ignored", async () => {
    const coordinator = await joined();
    const heard = await listen(coordinator);
    const other = await session();
    for (const text of ["", "x", '{"kind":"index"}', "{"]) await other.query("select pg_notify('stele', $1)", [text]);
    await coordinator.join({ id: b, address: addressOf(b) }, lastsMs);
    await until(() => heard.length > 0);
    expect(heard).toEqual([{ kind: "nodes" }]);
  });

  it("listening starts while the server is down, and stopping does not wait for the server", async () => {
    await server.halt("fast");
    const coordinator = createPostgresCoordinator({ url });
    const heard: Hint[] = [];
    const end = await coordinator.listen((hint) => heard.push(hint));
    expect(heard).toEqual([]);
    const other = createPostgresCoordinator({ url });
    await other.listen(() => {});
    await other.stop();
    await server.resume();
    await until(() => heard.length > 0);
    expect(heard).toEqual(hintsAfterLoss);
    await end();
    await coordinator.stop();
  });

  it("concurrent claims, handovers and balancing by two nodes leave one owner for each subscription, without a deadlock", async () => {
    const connectionsMax = 3; // One for each concurrent call: a call that waits two seconds for a connection fails.
    const one = await joined({ connectionsMax });
    const other = await created({ connectionsMax });
    await other.join({ id: b, address: addressOf(b) }, lastsMs);
    await other.renew(b, renewal);
    const numbers = Array.from({ length: 40 }, (_, index) => index);
    const insert =
      "insert into subscriptions select $1 || lpad(to_hex(n), 12, '0'), '1', 'x', 'RESTful', '', null, null, 'active', 0, 0, 0, 0, 0, n, null, 0, null, 0, 0 from generate_series(0, 39) n";
    await (await session()).query(insert, [subscriptionOf(0).id.slice(0, -12)]);
    const ids = numbers.map((number) => subscriptionOf(number).id);
    const even = ids.filter((_, index) => index % 2 === 0);
    const odd = ids.filter((_, index) => index % 2 === 1);
    for (let round = 0; round < 10; round += 1) {
      await Promise.all([
        claimAll(one, a, even),
        claimAll(other, b, odd),
        claimAll(one, a, odd.toReversed()),
        claimAll(other, b, even.toReversed()),
        one.balance(a),
        other.balance(b),
      ]);
      await Promise.all([
        one.listOwned(a).then((held) => one.handOver(held)),
        other.listOwned(b).then((held) => other.handOver(held)),
      ]);
    }
    const held = [...(await one.listOwned(a)), ...(await other.listOwned(b))].map(({ id }) => id);
    expect(held.toSorted((left, right) => (left < right ? -1 : 1))).toEqual(ids);
  });

  async function created(options: { readonly connectionsMax?: number } = {}): Promise<PostgresCoordinator> {
    const coordinator = createPostgresCoordinator({ url, ...options });
    ends.push(async () => coordinator.stop());
    return coordinator;
  }

  async function joined(options: Parameters<typeof created>[0] = {}): Promise<PostgresCoordinator> {
    const coordinator = await created(options);
    expect(await coordinator.join({ id: a, address: addressOf(a) }, lastsMs)).toBe("joined");
    expect(await coordinator.renew(a, renewal)).toBe(true);
    return coordinator;
  }

  /** Inserts a subscription without an owner. */
  async function insertOne(): Promise<void> {
    const insert =
      "insert into subscriptions select $1, '1', 'x', 'RESTful', '', null, null, 'active', 0, 0, 0, 0, 0, 0, null, 0, null, 0, 0";
    await (await session()).query(insert, [subscriptionOf(1).id]);
  }

  /** Changes all memberships as if the database's clock were `ms` ahead, or behind if `ms` is negative. */
  async function passTime(ms: number): Promise<void> {
    await (await session()).query("update nodes set expires_at = expires_at - $1", [ms]);
  }

  async function session(): Promise<Client> {
    const client = new Client({ connectionString: url });
    await client.connect();
    ends.push(async () => client.end());
    return client;
  }
});

/** Claims subscriptions one after another. */
async function claimAll(coordinator: PostgresCoordinator, nodeId: NodeId, ids: readonly SubscriptionId[]) {
  for (const id of ids) await coordinator.claim(id, nodeId);
}

/** Expects a renewal to fail by its own limits, before an earlier call with longer limits; returns the end of the earlier call. */
async function expectRenewalTimesOutFirst(
  coordinator: PostgresCoordinator,
): Promise<{ readonly ended: Promise<void> }> {
  let isEnded = false;
  const end = (): void => void (isEnded = true);
  const ended = coordinator.listNodes().then(end, end);
  await expect(coordinator.renew(a, renewal)).rejects.toEqual(unreachable);
  expect(isEnded).toBe(false);
  return { ended };
}

/** Starts to listen, and returns a list that receives the hints from now on. */
async function listen(coordinator: PostgresCoordinator): Promise<Hint[]> {
  const heard: Hint[] = [];
  await coordinator.listen((hint) => heard.push(hint));
  await until(() => heard.length > 0);
  heard.length = 0;
  return heard;
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2));
}

async function callUntilFailed(call: () => Promise<unknown>): Promise<never> {
  for (;;) await call();
}

async function callUntilAnswered<Result>(call: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!isBrokerError(error, "storeUnreachable")) throw error;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}
