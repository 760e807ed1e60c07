import { afterEach, beforeEach, expect, it } from "vitest";
import { createDeferred } from "../../lib/deferred.ts";
import type { AuditLine } from "../../ports/audit-log.ts";
import { BrokerError } from "@stele/wire";
import { MemoryApiKeys } from "../../store/memory/memory-api-keys.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { formatKeyCredential } from "../access/credential.ts";
import type { Caller } from "../access/caller.ts";
import type { PublishOutcome } from "../broker.ts";
import { testCaller } from "../testing/as-caller.ts";
import { secretNamed } from "../testing/secret-named.ts";
import { TestEngine } from "../testing/test-engine.ts";
import { withCalls } from "../../lib/with-calls.ts";
import type { SubscriptionOrder } from "./calls.ts";
import type { Operator } from "./operator.ts";
import { secret } from "../testing/key-secret.ts";

const ids = { admin: "1".repeat(16), client: "2".repeat(16) };
const roles = new Map([
  ["admin", [{ effect: "allow", actions: ["admin"] } as const]],
  ["client", [{ effect: "allow", actions: ["open", "publish", "subscribe", "read"], filter: "#" } as const]],
]);

const sha256 = (text: string): string => text;

let lines: AuditLine[];
let engine: TestEngine;
let operator: Operator;
let apiKeys: MemoryApiKeys;
/** Called before the store moves a subscription. */
let beforeMove: (key: { readonly id: string }) => Promise<void>;
beforeEach(async () => {
  lines = [];
  apiKeys = new MemoryApiKeys();
  const times = { createdAt: 0, expiresAt: undefined, revokedAt: undefined };
  for (const role of ["admin", "client"] as const) {
    const own = { id: ids[role], digest: sha256(secret), principal: role, tenant: undefined, roles: [role] };
    await apiKeys.insertApiKey({ ...own, ...times }, 10);
  }
  const auditLog = { write: (line: AuditLine) => void lines.push(line), findTrouble: () => undefined };
  beforeMove = async () => {};
  const memory = createMemoryStore();
  const store = withCalls(memory, {
    moveSubscription: async (key, ...rest) => {
      await beforeMove(key);
      return memory.moveSubscription(key, ...rest);
    },
  });
  engine = await TestEngine.start({ keys: { apiKeys, roles, sha256 }, auditLog, store });
  ({ operator } = engine.running);
});
afterEach(() => engine.stop());

function by(role: keyof typeof ids): Caller {
  const principal = engine.running.calls.authenticate(formatKeyCredential({ id: ids[role], secret }), testCaller);
  if (principal instanceof Promise) throw new Error("an API key must authenticate synchronously");
  return { ...testCaller, principal, protocol: "admin" };
}

/** Creates two subscriptions of the client, or more, then clears the audit lines. */
async function subscribe(urls = ["http://one/", "http://two/"]): Promise<readonly string[]> {
  const { calls } = engine.running;
  const made: string[] = [];
  await calls.open(by("client"), { topic: "a", groupId: undefined });
  for (const url of urls) {
    const more = { format: "RESTful", offset: undefined, secret: undefined, subscriptionId: undefined } as const;
    made.push(await calls.subscribe(by("client"), { topic: "a", groupId: undefined, url, ...more }));
  }
  lines.length = 0;
  return made;
}

/** Publishes one event as the client. */
async function publish(): Promise<string> {
  const call = { topic: "a", groupId: undefined, content: new Uint8Array([1]), extensions: [] };
  const submitted = new Promise<PublishOutcome>((resolve) => {
    engine.running.calls.submit(by("client"), call, resolve);
  });
  const outcome = await settle(submitted);
  if (outcome.status !== "SUCCESS") throw new Error(outcome.status);
  return outcome.eventId;
}

const page = { after: undefined, limit: 10 };
const pause = { order: { kind: "pause" }, isDryRun: false } as const;

/** Lets the work end: an order stops a worker, which takes virtual time. */
async function settle<Result>(work: Promise<Result>): Promise<Result> {
  work.catch(() => undefined);
  await engine.clock.settle();
  await engine.clock.advance(1_000);
  return work;
}

it("audits an order under its kind, and does not audit a dry run", async () => {
  const [id] = (await subscribe()) as [string];
  await settle(operator.orderSubscription(by("admin"), id, { ...pause, isDryRun: true }));
  await settle(operator.orderSubscription(by("admin"), id, pause));
  const line = { principal: "admin", protocol: "admin", action: "pause", subscriptionId: id };
  expect(lines).toMatchObject([
    { ...line, outcome: "begun" },
    { ...line, outcome: "done" },
  ]);
});

it("audits orders for dead letters with the eventId that they name, and each listing of dead letters", async () => {
  const [id] = (await subscribe()) as [string];
  await operator.listDeadLetters(by("admin"), id, page);
  await operator.orderSubscription(by("admin"), id, {
    order: { kind: "discard", eventId: undefined },
    isDryRun: false,
  });
  const eventId = "ca978112-1-1";
  const order = { kind: "redeliver", eventId } as const;
  await expect(operator.orderSubscription(by("admin"), id, { order, isDryRun: false })).rejects.toThrow(
    "no dead letter",
  );
  const line = { principal: "admin", subscriptionId: id };
  expect(lines.filter(({ outcome }) => outcome !== "begun")).toMatchObject([
    { ...line, action: "list dead letters", outcome: "done" },
    { ...line, action: "discard", outcome: "done" },
    { ...line, action: "redeliver", outcome: "failed", eventId },
  ]);
  lines.length = 0;
  await expect(operator.listDeadLetters(by("client"), id, page)).rejects.toThrow("not allowed");
  await expect(operator.orderSubscription(by("client"), id, { order, isDryRun: false })).rejects.toThrow("not allowed");
});

it("writes one pair of audit lines for each subscription that an order for a search changes", async () => {
  const made = await subscribe();
  await settle(operator.orderSubscriptions(by("admin"), {}, { ...pause, ...page }));
  for (const id of made) {
    const own = lines.filter(({ subscriptionId }) => subscriptionId === id);
    expect(own.map(({ action, outcome }) => `${action} ${outcome}`)).toEqual(["pause begun", "pause done"]);
  }
  expect(lines).toHaveLength(2 * made.length);
});

it("audits an order before it changes anything, and each result as soon as it is known", async () => {
  const made = await subscribe();
  const { promise: late, resolve } = createDeferred<void>();
  beforeMove = async (key) => {
    expect(lines).toContainEqual(expect.objectContaining({ outcome: "begun", subscriptionId: key.id }));
    if (key.id === made[1]) await late;
  };
  const ordered = operator.orderSubscriptions(by("admin"), {}, { ...pause, ...page });
  await engine.clock.settle();
  await engine.clock.advance(2_000);
  expect(lines.map(({ outcome, subscriptionId }) => `${outcome} ${subscriptionId}`).toSorted()).toEqual(
    [`begun ${made[0]}`, `begun ${made[1]}`, `done ${made[0]}`].toSorted(),
  );
  resolve();
  await ordered;
});

it("if the admin's key is revoked half-way through an order for many subscriptions, the audit log says that the order was refused", async () => {
  await subscribe(Array(33).fill("http://one/"));
  const moving = createDeferred<void>();
  beforeMove = () => moving.promise;
  const ordered = operator.orderSubscriptions(by("admin"), {}, { ...pause, ...page, limit: 50 });
  await engine.clock.settle();
  await apiKeys.revokeApiKey(ids.admin, engine.clock.now());
  await engine.clock.advance(1_000);
  moving.resolve();
  await settle(ordered);
  expect(lines.filter(({ outcome }) => outcome === "done")).toHaveLength(32);
  const ended = lines.filter(({ outcome }) => outcome !== "begun" && outcome !== "done");
  expect(ended).toMatchObject([{ principal: "admin", action: "pause", outcome: "refused", code: 100_701 }]);
});

const hidden = secretNamed("hidden");

it.each<[SubscriptionOrder, Partial<AuditLine>, Partial<AuditLine>]>([
  [{ kind: "replay", from: "OFFSET_FIRST" }, { place: "OFFSET_FIRST" }, { events: 1 }],
  [{ kind: "replay", from: { sequence: 1 } }, { place: "sequence 1" }, { events: 1 }],
  [{ kind: "skip", to: undefined }, { place: "the next event" }, { events: 0 }],
  [{ kind: "skip", to: { time: 1_800_000_000_000 } }, { place: "2027-01-15T08:00:00.000Z" }, { events: 0 }],
  [
    { kind: "change", change: { topic: "b", secret: hidden, batchEvents: 2, url: "http://one/hidden" } },
    { changed: "topic, secret, batch, url" },
    { events: 0, unmatched: 0 },
  ],
])("audits %j with its place, changed fields and number of events, but no secret", async (order, begun, more) => {
  const [id] = (await subscribe()) as [string];
  await engine.running.calls.open(by("client"), { topic: "b", groupId: undefined });
  await publish();
  await engine.clock.settle();
  lines.length = 0;
  await settle(operator.orderSubscription(by("admin"), id, { order, isDryRun: false }));
  expect(lines).toMatchObject([
    { outcome: "begun", ...begun },
    { outcome: "done", ...begun, ...more },
  ]);
  for (const text of ["hidden", hidden]) expect(JSON.stringify(lines)).not.toContain(text);
});

it("audits why an order failed", async () => {
  const [id] = (await subscribe()) as [string];
  beforeMove = async () => {
    throw new BrokerError("storeUnreachable");
  };
  await expect(settle(operator.orderSubscription(by("admin"), id, pause))).rejects.toThrow();
  expect(lines).toMatchObject([{ outcome: "begun" }, { action: "pause", outcome: "failed", code: 200_207 }]);
});

it("audits each read of an operator, and each refused order and read of a client", async () => {
  const [id] = (await subscribe()) as [string];
  const client = by("client");
  const refused = { principal: "client", outcome: "refused", code: 100_702 };
  await expect(operator.orderSubscription(client, id, pause)).rejects.toThrow();
  await expect(operator.orderSubscriptions(client, {}, { ...pause, ...page })).rejects.toThrow();
  await expect(operator.listGroups(client, page)).rejects.toThrow();
  const event = { eventId: await publish(), groupId: undefined };
  await expect(operator.getEvent(client, event)).rejects.toThrow();
  await expect(operator.getProof(client, event)).rejects.toThrow();
  expect(() => operator.listFigures(client)).toThrow();
  expect(lines).toMatchObject([
    { ...refused, action: "pause", subscriptionId: id },
    { ...refused, action: "pause" },
    { ...refused, action: "list groups" },
    { ...refused, action: "show event" },
    { ...refused, action: "show proof" },
    { ...refused, action: "list figures" },
  ]);
  lines.length = 0;
  const admin = by("admin");
  await operator.searchSubscriptions(admin, {}, page);
  await operator.getSubscription(admin, id);
  await operator.searchSessions(admin, {}, page);
  await operator.searchTopics(admin, { groupId: undefined }, page);
  await operator.getTopic(admin, "a", undefined);
  await operator.listEvents(admin, { topic: "a", groupId: undefined, before: undefined, limit: 1 });
  await operator.getEvent(admin, event);
  await operator.listGroups(admin, page);
  await operator.listNodes(admin, page);
  operator.listFigures(admin);
  const first = [
    "list subscriptions",
    "show subscription",
    "list sessions",
    "list topics",
    "show topic",
    "list events",
    "show event",
  ];
  expect(lines.map(({ action }) => action)).toEqual([...first, "list groups", "list nodes", "list figures"]);
});
