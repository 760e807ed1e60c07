import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { AccessRule } from "../../domain/access-rule.ts";
import { parseSubscriptionId } from "../../domain/subscription.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { MemoryApiKeys } from "../../store/memory/memory-api-keys.ts";
import type { Caller } from "../access/caller.ts";
import { formatKeyCredential } from "../access/credential.ts";
import { testCaller } from "../testing/as-caller.ts";
import { TestEngine } from "../testing/test-engine.ts";
import type { OrderCall } from "./calls.ts";
import type { Operator } from "./operator.ts";
import { secret } from "../testing/key-secret.ts";

const sha256 = (text: string): string => text;
const client = ["open", "close", "publish", "subscribe", "unsubscribe", "read"] as const;
const roles = new Map<string, readonly AccessRule[]>([
  ["client", [{ effect: "allow", actions: client }]],
  ["admin", [{ effect: "allow", actions: ["admin"] }]],
  ["admin of group 2", [{ effect: "allow", actions: ["admin"], groupId: "2" }]],
  ["admin of topics only", [{ effect: "allow", actions: ["admin"], filter: "#" }]],
]);
const principals = [
  { role: "client", tenant: undefined },
  { role: "admin", tenant: "acme" },
  { role: "admin of group 2", tenant: undefined },
  { role: "admin of topics only", tenant: undefined },
  { role: "admin", tenant: undefined },
];
const administrator = principals.length - 1;

let engine: TestEngine;
let apiKeys: MemoryApiKeys;
let id: string;
let eventId: string;
beforeEach(async () => {
  apiKeys = new MemoryApiKeys();
  const times = { createdAt: 0, expiresAt: undefined, revokedAt: undefined };
  for (const [index, { role, tenant }] of principals.entries()) {
    const own = { id: idOf(index), digest: sha256(secret), principal: `p${index}`, tenant, roles: [role] };
    await apiKeys.insertApiKey({ ...own, ...times }, 10);
  }
  engine = await TestEngine.start({ keys: { apiKeys, roles, sha256 }, confirmations: 0 });
  const { calls } = engine.running;
  await calls.open(by(0), { topic: "a", groupId });
  const order = { format: "RESTful", offset: undefined, secret: undefined, subscriptionId: undefined } as const;
  id = await calls.subscribe(by(0), { ...order, topic: "a", groupId, url: "http://receiver/" });
  const call = { topic: "a", groupId, content: Buffer.from("x"), extensions: [] };
  calls.submit(by(0), call, (outcome) => {
    if (outcome.status === "SUCCESS") eventId = outcome.eventId;
  });
  await engine.clock.advance(1_000);
});
afterEach(() => engine.stop());

const groupId = undefined;

function idOf(index: number): string {
  return String(index).repeat(16);
}

function by(index: number): Caller {
  const principal = engine.running.calls.authenticate(formatKeyCredential({ id: idOf(index), secret }), testCaller);
  if (principal instanceof Promise) throw new Error("an API key must authenticate synchronously");
  return { ...testCaller, principal, protocol: "admin" };
}

const page = { after: undefined, limit: 10 };
const pause: OrderCall = { order: { kind: "pause" }, isDryRun: false };
/** One call of each operation. Where an operation takes a group, the call names the default group. */
const operations: { readonly [Name in keyof Operator]: (operator: Operator, caller: Caller) => unknown } = {
  searchSubscriptions: (operator, caller) => operator.searchSubscriptions(caller, { groupId: "1" }, page),
  getSubscription: (operator, caller) => operator.getSubscription(caller, id),
  listDeadLetters: (operator, caller) => operator.listDeadLetters(caller, id, page),
  orderSubscription: (operator, caller) => operator.orderSubscription(caller, id, pause),
  orderSubscriptions: (operator, caller) =>
    operator.orderSubscriptions(caller, { groupId: "1" }, { ...page, ...pause }),
  searchSessions: (operator, caller) => operator.searchSessions(caller, { groupId: "1" }, page),
  getSession: (operator, caller) => operator.getSession(caller, id),
  searchTopics: (operator, caller) => operator.searchTopics(caller, { groupId: "1" }, page),
  getTopic: (operator, caller) => operator.getTopic(caller, "a", "1"),
  listEvents: (operator, caller) =>
    operator.listEvents(caller, { topic: "a", groupId: "1", before: undefined, limit: 10 }),
  getEvent: (operator, caller) => operator.getEvent(caller, { eventId, groupId: "1" }),
  getProof: (operator, caller) => operator.getProof(caller, { eventId, groupId: "1" }),
  listGroups: (operator, caller) => operator.listGroups(caller, page),
  listSkippedEntries: (operator, caller) => operator.listSkippedEntries(caller, "1", page),
  listBlocks: (operator, caller) => operator.listBlocks(caller, "1", page),
  listNodes: (operator, caller) => operator.listNodes(caller, page),
  listFigures: (operator, caller) => operator.listFigures(caller),
  listRoles: (operator, caller) => operator.listRoles(caller, page),
  getRole: (operator, caller) => operator.getRole(caller, "client"),
  setRole: (operator, caller) => operator.setRole(caller, "stored", [{ effect: "allow", actions: ["admin"] }]),
  deleteRole: async (operator, caller) => {
    await apiKeys.putRole({ name: "deleted", rules: [] }, 10);
    return operator.deleteRole(caller, "deleted");
  },
};

/** The code of the error that a call throws; undefined if it succeeds. */
async function codeOf(run: () => unknown): Promise<number | undefined> {
  try {
    const done = Promise.resolve(run());
    done.catch(() => undefined);
    await engine.clock.advance(1_000);
    await done;
    return undefined;
  } catch (error) {
    return (error as { readonly code: number }).code;
  }
}

/** Calls that fail for an admin too: the chain of these tests makes no proofs, and there is no session. */
const failures: { readonly [Name in keyof Operator]?: number } = { getProof: 200_206, getSession: 100_508 };

const entries = Object.entries(operations) as [keyof Operator, (typeof operations)[keyof Operator]][]; // The object's own keys.
describe.each(entries)("%s", (name, ask) => {
  const codeFor = (caller: Caller): Promise<number | undefined> => codeOf(() => ask(engine.running.operator, caller));

  it("is refused to all but an admin of the whole broker, and changes nothing", async () => {
    const before = await engine.store.listSubscriptions();
    const codes = [];
    for (const index of principals.keys()) if (index !== administrator) codes.push(await codeFor(by(index)));
    expect(codes).toEqual([100_702, 100_702, 100_702, 100_702]);
    expect(await codeFor(testCaller)).toBe(100_701);
    const caller = by(administrator);
    await apiKeys.revokeApiKey(idOf(administrator), engine.clock.now());
    await engine.clock.advance(1_000);
    expect(await codeFor(caller)).toBe(100_701);
    expect(await engine.store.listSubscriptions()).toEqual(before);
    const stored = (await apiKeys.readRoles(0))?.roles ?? [];
    expect(stored.map((role) => role.name)).toEqual(name === "deleteRole" ? ["deleted"] : []);
  });

  it("is served to an admin of the whole broker", async () => {
    expect(await codeFor(by(administrator))).toBe(failures[name]);
  });
});

it("an admin of one group may search that group only", async () => {
  const caller = by(2);
  const { operator } = engine.running;
  const search = (groupId: string) => codeOf(() => operator.searchSubscriptions(caller, { groupId }, page));
  expect(await search("2")).not.toBe(100_702);
  expect(await search("1")).toBe(100_702);
});

it("ends orders once the key of their admin is revoked, even while they wait for a receiver's consent", async () => {
  const [caller, consent] = [by(administrator), createDeferred<void>()];
  engine.sink.checkTarget = () => consent.promise;
  const call: OrderCall = { order: { kind: "change", change: { url: "http://foreign/" } }, isDryRun: false };
  const { operator } = engine.running;
  const given: readonly Promise<unknown>[] = [
    operator.orderSubscription(caller, id, call),
    operator.orderSubscriptions(caller, {}, { ...page, ...call }),
  ];
  const codes = given.map((order) => order.catch(({ code }: { code: number }) => code));
  await engine.clock.settle();
  await apiKeys.revokeApiKey(idOf(administrator), engine.clock.now());
  await engine.clock.advance(1_000);
  consent.resolve();
  await engine.clock.advance(1_000);
  expect(await Promise.all(codes)).toEqual([100_701, 100_701]);
  expect(await engine.store.listSubscriptions()).toMatchObject([{ delivery: { url: "http://receiver/" } }]);
});

/** Gives an order for all subscriptions, and revokes the admin's key meanwhile. `goOn` then ends the order's wait. Returns the answer. */
async function orderAndRevoke(call: OrderCall, goOn = (): void => {}) {
  const ordered = engine.running.operator.orderSubscriptions(by(administrator), {}, { ...page, ...call });
  await engine.clock.settle();
  await apiKeys.revokeApiKey(idOf(administrator), engine.clock.now());
  await engine.clock.advance(1_000);
  goOn();
  await engine.clock.advance(1_000);
  return (await ordered).items;
}

it("changes no subscription once the key is revoked while an order for many waits for consent again", async () => {
  const consent = createDeferred<void>();
  let asked = 0;
  engine.sink.checkTarget = async () => {
    asked += 1;
    if (asked > 1) await consent.promise;
  };
  const call: OrderCall = { order: { kind: "change", change: { url: "http://foreign/" } }, isDryRun: false };
  const items = await orderAndRevoke(call, () => consent.resolve());
  expect(items).toMatchObject([{ id, error: { code: 100_701 } }]);
  expect(await engine.store.listSubscriptions()).toMatchObject([{ delivery: { url: "http://receiver/" } }]);
});

it("changes no subscription once the key is revoked while an order for many waits for attempts in progress", async () => {
  await hangAttempt();
  expect(await orderAndRevoke(pause)).toMatchObject([{ id, error: { code: 100_701 } }]);
  expect(await engine.store.listSubscriptions()).toMatchObject([{ state: "active" }]);
});

/** Pauses 33 subscriptions by one order, which changes 32 of them at once. `interrupt` runs before these changes end. Returns the errors in the answer. */
async function pauseMany(interrupt: () => Promise<void>): Promise<readonly unknown[]> {
  const order = { format: "RESTful", offset: undefined, secret: undefined, subscriptionId: undefined } as const;
  const subscribe = () =>
    engine.running.calls.subscribe(by(0), { ...order, topic: "a", groupId, url: "http://receiver/" });
  for (let count = 1; count < 33; count += 1) await subscribe();
  const [written, move] = [createDeferred<void>(), engine.store.moveSubscription.bind(engine.store)];
  engine.store.moveSubscription = async (...call) => {
    const outcome = await move(...call);
    await written.promise;
    return outcome;
  };
  const rest = { after: undefined, limit: 50, ...pause };
  const ordered = engine.running.operator.orderSubscriptions(by(administrator), {}, rest);
  await engine.clock.settle();
  await interrupt();
  written.resolve();
  await engine.clock.advance(1_000);
  return (await ordered).items.map(({ error }) => error);
}

const isPaused = ({ state }: { readonly state: string }): boolean => state === "paused";

it("answers which subscriptions an order for many has changed before the key was revoked", async () => {
  const errors = await pauseMany(async () => {
    await apiKeys.revokeApiKey(idOf(administrator), engine.clock.now());
    await engine.clock.advance(1_000);
  });
  expect(errors).toEqual([...Array(32).fill(undefined), expect.objectContaining({ code: 100_701 })]);
  expect((await engine.store.listSubscriptions()).filter(isPaused)).toHaveLength(32);
});

it("if the keys become unreadable, an order for many answers busy for each subscription that it has not begun to change", async () => {
  const errors = await pauseMany(async () => {
    apiKeys.listApiKeys = async () => {
      throw new Error("down");
    };
    await engine.clock.advance(60_000);
  });
  const busy = { code: 200_300, message: expect.stringMatching(/not begun: .*database/) };
  expect(errors).toEqual([...Array(32).fill(undefined), expect.objectContaining(busy)]);
  expect((await engine.store.listSubscriptions()).filter(isPaused)).toHaveLength(32);
});

it("leaves an attempt in progress alone if the key is revoked while the order waits for consent", async () => {
  await hangAttempt();
  const [caller, consent] = [by(administrator), createDeferred<void>()];
  engine.sink.checkTarget = () => consent.promise;
  const call: OrderCall = { order: { kind: "change", change: { url: "http://foreign/" } }, isDryRun: false };
  const code = codeOf(() => engine.running.operator.orderSubscription(caller, id, call));
  await apiKeys.revokeApiKey(idOf(administrator), engine.clock.now());
  await engine.clock.advance(1_000);
  consent.resolve();
  await engine.clock.advance(5_000);
  expect(await code).toBe(100_701);
  expect(engine.sink.attempts).toHaveLength(1);
});

/** Publishes an event, and lets the receiver hang in its attempt. */
async function hangAttempt(): Promise<void> {
  engine.sink.receive("http://receiver/", () => new Promise(() => {}));
  engine.sink.attempts.length = 0;
  engine.running.calls.submit(by(0), { topic: "a", groupId, content: Buffer.from("y"), extensions: [] }, () => {});
  await engine.clock.advance(1_000);
  expect(engine.sink.attempts).toHaveLength(1);
}

/** Creates a subscription with one dead letter, whose receiver accepts events from then on. */
async function subscribeWithLetter(): Promise<string> {
  const url = "http://failing/";
  engine.sink.receive(url, () => ({ status: "failed", reason: "answered 500" }));
  const options = { onFailure: "skip", attemptsMax: 1 } as const;
  const order = { format: "RESTful", offset: "OFFSET_FIRST", secret: undefined, subscriptionId: undefined } as const;
  const made = await engine.running.calls.subscribe(by(0), { ...order, topic: "a", groupId, url, options });
  await engine.clock.advance(1_000);
  engine.sink.receive(url, () => ({ status: "accepted" }));
  engine.sink.attempts.length = 0;
  return made;
}

it.each(["redeliver", "discard"] as const)(
  "keeps the dead letters, and delivers none, if the key is revoked while a %s waits",
  async (kind) => {
    const made = await subscribeWithLetter();
    const [caller, waited] = [by(administrator), createDeferred<void>()];
    const { sink, store } = engine;
    const [attempt, list] = [sink.attempt.bind(sink), store.deadLetters.list.bind(store.deadLetters)];
    sink.attempt = (...call) => waited.promise.then(() => attempt(...call)); // It has to wait for a connection.
    if (kind === "discard") store.deadLetters.list = (...call) => waited.promise.then(() => list(...call));
    const call: OrderCall = { order: { kind, eventId: undefined }, isDryRun: false };
    const code = codeOf(() => engine.running.operator.orderSubscription(caller, made, call));
    await engine.clock.settle();
    await apiKeys.revokeApiKey(idOf(administrator), engine.clock.now());
    await engine.clock.advance(1_000);
    waited.resolve();
    await engine.clock.advance(1_000);
    expect([await code, sink.attempts]).toEqual([100_701, []]);
    expect(await store.deadLetters.count(parseSubscriptionId(made))).toBe(1);
  },
);

it("sends no test event once the key is revoked while the order waits for the receiver's consent", async () => {
  const [caller, consent] = [by(administrator), createDeferred<void>()];
  const { sink, running } = engine;
  const test = sink.test.bind(sink);
  sink.test = (...call) => consent.promise.then(() => test(...call));
  const call: OrderCall = { order: { kind: "test" }, isDryRun: false };
  const code = codeOf(() => running.operator.orderSubscription(caller, id, call));
  await apiKeys.revokeApiKey(idOf(administrator), engine.clock.now());
  await engine.clock.advance(1_000);
  consent.resolve();
  await engine.clock.advance(1_000);
  expect([await code, sink.tested]).toEqual([100_701, []]);
});

const change = (topic: string): OrderCall => ({ order: { kind: "change", change: { topic } }, isDryRun: false });

it("refuses to change a subscription to a filter with topics that its owner may not subscribe to", async () => {
  const rule = { effect: "allow", actions: ["subscribe"], filter: "a" } as const;
  roles.set("only a", [rule]);
  const { calls, operator } = engine.running;
  const own = { id: "9".repeat(16), digest: sha256(secret), principal: "narrow", tenant: undefined, roles: ["only a"] };
  await apiKeys.insertApiKey({ ...own, createdAt: 0, expiresAt: undefined, revokedAt: undefined }, 10);
  await engine.clock.advance(1_000);
  const order = { format: "RESTful", offset: undefined, secret: undefined, subscriptionId: undefined } as const;
  const narrow = await calls.subscribe(by(9), { ...order, topic: "a", groupId, url: "http://narrow/" });
  const admin = by(administrator);
  for (const isDryRun of [true, false]) {
    const refused = { ...change("#"), isDryRun };
    expect(await codeOf(() => operator.orderSubscription(admin, narrow, refused))).toBe(100_702);
  }
  expect(await codeOf(() => operator.orderSubscription(admin, id, change("#")))).toBeUndefined();
});
