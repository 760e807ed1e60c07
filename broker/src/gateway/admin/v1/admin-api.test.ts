import { adminOperations, adminPath, type toAdminOpenApi } from "@stele/wire";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Broker } from "../../../engine/broker.ts";
import type { AttemptOutcome } from "../../../ports/sink.ts";
import { RecordingPeer } from "../../../engine/testing/recording-peer.ts";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import { secretNamed } from "../../../engine/testing/secret-named.ts";
import { TestEngine } from "../../../engine/testing/test-engine.ts";
import { serve, type Served } from "../../testing/serve.ts";

type Document = ReturnType<typeof toAdminOpenApi>;
interface Answer {
  readonly status: number;
  readonly type: string | null;
  readonly body: Readonly<Record<string, unknown>>;
}

const sessionFilter = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;

let engine: TestEngine;
let server: Served;
let ids: readonly string[];
let eventId: string;
let document: Document;
const ajv = new Ajv2020({ strict: false });
formats.default(ajv);
ajv.addFormat("base64", /^[A-Za-z0-9+/]*={0,2}$/);
/** Operations that answered with success. */
const answered = new Set<string>();

beforeAll(async () => {
  engine = await TestEngine.start();
  const { broker, sink } = engine;
  await broker.open({ topic: "orders/eu", groupId: undefined });
  const down: AttemptOutcome = { status: "failed", reason: "answered 500" };
  sink.receive("http://down.example/hook", () => down);
  ids = [
    await engine.subscribe("orders/eu"),
    await engine.subscribe("orders/#", { url: "http://down.example/hook", format: "JsonRPC" }),
  ];
  eventId = await engine.publish("orders/eu", "1");
  await engine.publish("orders/eu", "2");
  await engine.clock.advance(5_000);
  const { calls, operator } = engine.running;
  const getEvent: Broker["getEvent"] = (caller, order) => calls.getEvent(caller, order);
  server = await serve({ getEvent }, { operator });
  document = (await (await fetch(`${server.url}${adminPath}/openapi.json`)).json()) as Document; // Compared below.
  ajv.addSchema({ $id: "document", components: document.components });
});
afterAll(async () => {
  await server.close();
  await engine.stop();
});

/** Calls an operation, and checks the answer against the document. */
async function call(method: string, path: string, body?: unknown): Promise<Answer> {
  const init =
    body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const answering = fetch(`${server.url}${adminPath}${path}`, { method, ...init });
  const response = await untilAnswered(answering);
  const answer = {
    status: response.status,
    type: response.headers.get("content-type"),
    body: (await response.json()) as Answer["body"], // Objects, as the schemas say.
  };
  checkAgainstDocument(method, path, answer);
  return answer;
}

/** Advances the virtual clock, on which orders wait. */
async function untilAnswered(answering: Promise<Response>): Promise<Response> {
  const state = { isDone: false };
  const done = answering.finally(() => void (state.isDone = true));
  while (!state.isDone) {
    await new Promise(setImmediate);
    await engine.clock.advance(10);
  }
  return done;
}

function checkAgainstDocument(method: string, path: string, { status, body }: Answer): void {
  const isGood = status === 200;
  const [name, schema] = isGood ? findOperation(method, path) : ["", "Problem"];
  const validate = ajv.compile({ $ref: `document#/components/schemas/${schema}` });
  expect([validate(body), validate.errors, path]).toEqual([true, null, path]);
  if (isGood) answered.add(name);
}

function findOperation(method: string, path: string): readonly [string, string] {
  const [plain = ""] = path.split("?");
  const entries = Object.entries(document.paths).toSorted(
    ([left], [right]) => left.split("{").length - right.split("{").length,
  );
  for (const [template, methods] of entries) {
    const pattern = new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`);
    const operation = methods[method.toLowerCase()] as
      | { operationId: string; responses: { 200: { content: { "application/json": { schema: { $ref: string } } } } } }
      | undefined; // As toAdminOpenApi makes it.
    if (operation === undefined || !pattern.test(plain)) continue;
    const { $ref } = operation.responses[200].content["application/json"].schema;
    return [operation.operationId, $ref.replace(/^.*\//, "")];
  }
  throw new Error(`the document has no ${method} ${plain}`);
}

describe("reads", () => {
  it("lists subscriptions with their lag and failures, in pages", async () => {
    const { status, body } = await call("GET", "/subscriptions?limit=1");
    expect([status, body["next"]]).toEqual([200, ids[0]]);
    expect(body["items"]).toMatchObject([{ id: ids[0], topic: "orders/eu", state: "active", lag: 0, notified: 2 }]);
    const rest = await call("GET", `/subscriptions?cursor=${String(body["next"])}`);
    expect(rest.body["items"]).toMatchObject([{ id: ids[1], kind: "JsonRPC", lag: 2, failing: {} }]);
    const time: unknown = expect.stringMatching(/Z$/);
    const lastAttempt = { at: time, outcome: "failed", reason: "answered 500" };
    expect(rest.body["items"]).toMatchObject([{ waitingSince: time, nextAttemptAt: time, lastAttempt }]);
    expect(rest.body["next"]).toBeUndefined();
    const [own, failing] = [body["items"], rest.body["items"]].flat();
    expect(own).toMatchObject({ notified: 2, notifiedAt: time });
    expect(failing).toMatchObject({ notified: 0 });
    expect(failing).not.toHaveProperty("notifiedAt");
  });

  it("shows a subscription with its attempts, and no secret", async () => {
    const { body } = await call("GET", `/subscriptions/${ids[1]}`);
    expect(body).toMatchObject({ attempts: [{ outcome: "failed", reason: "answered 500" }, {}, {}] });
    expect(body["nextAttemptAt"]).toMatch(/Z$/);
    expect(body["waitingSince"]).toMatch(/Z$/);
    expect(body).not.toHaveProperty("secret");
  });

  it("finds topics, their events by sequence and time, and one event", async () => {
    expect((await call("GET", "/topics?prefix=orders/")).body["items"]).toMatchObject([
      { name: "orders/eu", sequence: 2 },
    ]);
    expect((await call("GET", "/topics/orders%2Feu")).body).toMatchObject({
      events: 2,
      subscriptions: 2,
      size: { bytes: expect.any(Number), batches: 2, isCut: false },
      rate: { events: 2, seconds: 300 },
      lastEventAt: expect.stringMatching(/Z$/),
      writers: { kind: "everyone" },
    });
    expect((await call("GET", "/subscriptions?matches=orders/eu&limit=1")).body).toMatchObject({
      items: [{ id: ids[0] }],
      next: ids[0],
    });
    expect((await call("GET", "/subscriptions?matches=other")).body).toEqual({ items: [] });
    const { body } = await call("GET", "/topics/orders%2Feu/events?limit=1");
    expect(body).toMatchObject({ items: [{ sequence: 2, block: expect.any(Number) }], next: "2" });
    expect((await call("GET", "/topics/orders%2Feu/events?cursor=2")).body).toMatchObject({ items: [{ eventId }] });
    const before = await call("GET", "/topics/orders%2Feu/events?from=1&before=2");
    expect(before.body).toMatchObject({ items: [{ eventId }] });
    expect(before.body).not.toHaveProperty("next");
    const since = await call("GET", "/topics/orders%2Feu/events?from=2000-01-01T00:00:00Z&limit=1");
    expect(since.body).toMatchObject({ items: [{ sequence: 2 }], next: "2" });
    expect((await call("GET", "/topics/orders%2Feu/events?before=2000-01-01T00:00:00Z")).body).toEqual({ items: [] });
    const { body: one } = await call("GET", `/events/${eventId}`);
    expect(one).toMatchObject({ eventId, sequence: 1, logIndex: 0, indexInBatch: 0 });
    expect((await call("GET", "/topics/orders%2Feu/events?before=2")).body).toEqual({ items: [one] });
  });

  it("shows the index of an event in its batch", async () => {
    await engine.broker.open({ topic: "together", groupId: undefined });
    await Promise.all(["1", "2", "3"].map((text) => engine.publish("together", text)));
    const { body } = await call("GET", "/topics/together/events?before=4&from=2");
    expect(body).toMatchObject({ items: [{ indexInBatch: 2 }, { indexInBatch: 1 }] });
  });

  it("finds sessions, and shows one with its filters and its lag", async () => {
    const filters = [{ ...sessionFilter, filter: parseTopicFilter("+") }];
    const request = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, expiryMs: 60_000 } as const;
    const peer = new RecordingPeer();
    const rest = { windowMax: 10, will: undefined, onConnected: () => {} };
    const attached = engine.broker.attach({ ...request, ...rest }, peer);
    const [attachment] = await Promise.all([attached, engine.clock.settle()]);
    await attachment.subscribe(filters);
    await engine.publish("together", "4");
    const { id } = attachment.session;
    const { body } = await call("GET", `/sessions/${id}`);
    expect(body).toMatchObject({ id, kind: "MQTT", isConnected: true, lag: 1, filters: [{ topic: "+" }] });
    expect(body["waitingSince"]).toMatch(/Z$/);
    const listed = await call("GET", "/sessions?kind=MQTT&connected=true&lagMin=1&groupId=1");
    expect(listed.body).toMatchObject({ items: [{ id, lag: 1, cursorBlock: expect.any(Number) }] });
    for (const query of ["kind=Tail", "connected=false", "lagMin=2", "owner=nobody", "node=none:1"]) {
      expect((await call("GET", `/sessions?${query}`)).body).toEqual({ items: [] });
    }
  });

  it("the API shows groups, nodes, blocks, figures and its own OpenAPI document", async () => {
    expect((await call("GET", "/openapi.json")).body).toMatchObject({ openapi: "3.1.0" });
    const group = { groupId: "1", ready: true, rollBacks: 0, finality: "latest" };
    expect((await call("GET", "/groups?limit=1")).body).toMatchObject({ items: [group] });
    expect((await call("GET", "/groups/1/skipped-entries")).body).toEqual({ items: [] });
    expect((await call("GET", "/blocks?limit=1")).body).toMatchObject({
      items: [{ isCut: false, batches: [{ topic: "together", firstSequence: 4, count: 1 }] }],
    });
    expect((await call("GET", "/nodes?limit=1")).body).toEqual({
      items: [{ isOwn: true, roles: { follows: ["1"], subscriptions: 2, sessions: 1 } }],
      history: [],
    });
    expect((await call("GET", "/figures")).body).toMatchObject({ intervalMs: 5_000 });
  });
});

describe("orders", () => {
  it("replay events after a dry run, and pause, resume, retry and skip a subscription", async () => {
    const path = `/subscriptions/${ids[0]}`;
    const dry = await call("POST", `${path}/replay?dryRun=true`, { from: 1 });
    expect(dry.body).toEqual({ id: ids[0], events: 2, dryRun: true });
    expect((await call("POST", `${path}/replay`, { from: "OFFSET_FIRST" })).body).toMatchObject({ events: 2 });
    for (const order of ["pause", "resume", "retry", "skip"]) {
      expect((await call("POST", `${path}/${order}`)).body).toEqual({
        id: ids[0],
        events: expect.any(Number),
        dryRun: false,
      });
    }
  });

  it("can change and test a subscription, whose secret no GET shows", async () => {
    const path = `/subscriptions/${ids[0]}`;
    const change = { secret: secretNamed("one"), kind: "JsonRPC" };
    expect((await call("POST", `${path}/change?dryRun=true`, change)).body).toMatchObject({ dryRun: true });
    expect((await call("POST", `${path}/change`, change)).body).toEqual({ id: ids[0], events: 0, dryRun: false });
    await call("POST", `${path}/change`, { secret: secretNamed("two"), rotationSeconds: 60, kind: "RESTful" });
    const { body } = await call("GET", path);
    expect(body).toMatchObject({ hasSecret: true, kind: "RESTful", olderSecretUntil: expect.stringMatching(/Z$/) });
    expect(JSON.stringify(body)).not.toContain("whsec_");
    await call("POST", `${path}/change`, { secret: secretNamed("two"), rotationSeconds: 0 });
    expect((await call("GET", path)).body).not.toHaveProperty("olderSecretUntil");
    const tested = await call("POST", `${path}/test`);
    expect(tested.body).toMatchObject({ test: { outcome: "accepted", durationMs: expect.any(Number) } });
    const made = await call("POST", `${path}/change`, { secret: "generate" });
    expect(made.body).toMatchObject({ secret: expect.stringMatching(/^whsec_[\w+/]{43}=$/) });
    expect(JSON.stringify((await call("GET", path)).body)).not.toContain("whsec_");
    const all = await call("POST", "/subscriptions/change?all=true&dryRun=true", { topic: "orders/eu" });
    expect(all.body["items"]).toHaveLength(2);
    expect((await call("POST", "/subscriptions/test?host=down.example")).body["items"]).toHaveLength(1);
  });

  it("redeliver or discard the events that a subscription skipped", async () => {
    const path = `/subscriptions/${ids[1]}`;
    const { failing } = (await call("GET", path)).body as { failing: { attempts: number } };
    await call("POST", `${path}/change`, { onFailure: "skip", attemptsMax: 1 });
    await engine.clock.advance(1_000);
    expect((await call("GET", path)).body).toMatchObject({ onFailure: "skip", attemptsMax: 1, deadLetters: 2, lag: 0 });
    const { body } = await call("GET", `${path}/dead-letters?limit=1`);
    expect(body["items"]).toMatchObject([
      { eventId, topic: "orders/eu", attempts: failing.attempts + 1, reason: "answered 500" },
    ]);
    const rest = await call("GET", `${path}/dead-letters?cursor=${String(body["next"])}`);
    expect(rest.body).toMatchObject({ items: [{ eventId: expect.stringMatching(/-2-/) }] });
    expect(rest.body).not.toHaveProperty("next");
    const again = await call("POST", `${path}/redeliver`, { eventId });
    expect(again.body).toMatchObject({ events: 0, letters: { left: 2, failure: { eventId, reason: "answered 500" } } });
    const dry = await call("POST", `${path}/discard?dryRun=true`, { all: true });
    expect(dry.body).toEqual({ id: ids[1], events: 2, dryRun: true });
    expect((await call("POST", `${path}/discard`, { all: true })).body).toMatchObject({ letters: { left: 0 } });
    for (const order of ["redeliver", "discard"]) {
      const all = await call("POST", `/subscriptions/${order}?all=true`, { all: true });
      expect(all.body["items"]).toMatchObject([{ events: 0 }, { events: 0 }]);
    }
    await call("POST", `${path}/change`, { onFailure: "suspend" });
    expect((await call("GET", path)).body).not.toHaveProperty("onFailure");
  });

  it("apply to all subscriptions that a search finds, and are refused without a search or all=true", async () => {
    for (const query of ["", "?prefix=", "?prefix=&state=active", "?lagMin=0&failingMsMin=0"]) {
      expect((await call("POST", `/subscriptions/pause${query}`)).status).toBe(400);
    }
    for (const order of ["pause", "resume", "retry", "skip"]) {
      const { body } = await call("POST", `/subscriptions/${order}?host=down.example`);
      expect(body["items"]).toEqual([{ id: ids[1], events: expect.any(Number), dryRun: false }]);
    }
    const { body } = await call("POST", "/subscriptions/replay?all=true&dryRun=true", { from: "2000-01-01T00:00:00Z" });
    expect(body["items"]).toHaveLength(2);
  });

  it("accept a question mark in a query value, and still read the parameters after it", async () => {
    await engine.broker.open({ topic: "orders/eu?", groupId: undefined });
    const id = await engine.subscribe("orders/eu?");
    const { body } = await call("POST", "/subscriptions/pause?topic=orders/eu?&dryRun=true");
    expect(body["items"]).toEqual([{ id, events: 0, dryRun: true }]);
    await engine.broker.unSubscribe({ subscriptionId: id });
  });

  it("report why one subscription is refused, and still apply to the others", async () => {
    const { body } = await call("POST", "/subscriptions/replay?all=true&dryRun=true", { from: 1 });
    expect(body["items"]).toMatchObject([{ events: 2 }, { error: { code: 200001 } }]);
  });
});

describe("failures", () => {
  it.each<[string, readonly [number, number], unknown?]>([
    ["GET /nothing", [404, 200001]],
    ["POST /subscriptions", [404, 200001]],
    ["GET /subscriptions?limit=0", [400, 200001]],
    ["GET /subscriptions?limit=1&limit=2", [400, 200001]],
    ["GET /subscriptions?unknown=1", [400, 200001]],
    ["GET /subscriptions?prefix=%00", [400, 200001]],
    ["GET /subscriptions/nonsense", [400, 100505]],
    ["GET /subscriptions/00000000-0000-4000-8000-00000000ffff", [404, 100504]],
    ["GET /topics/none", [404, 100101]],
    ["GET /topics/%zz", [400, 200001]],
    ["GET /topics?groupId=9", [404, 200211]],
    ["GET /topics/orders%2Feu/events?from=0", [400, 200001]],
    ["GET /topics/orders%2Feu/events?from=OFFSET_FIRST", [400, 200001]],
    ["GET /topics/orders%2Feu/events?before=2023-13-01T00:00:00Z", [400, 200001]],
    ["GET /topics/orders%2Feu/events?after=1", [400, 200001]],
    ["GET /groups?cursor=zzz", [400, 200001]],
    ["GET /groups/9/skipped-entries", [404, 200211]],
    ["GET /groups/1/skipped-entries?cursor=zzz", [400, 200001]],
    ["GET /sessions?cursor=zzz", [400, 200001]],
    ["GET /sessions?kind=RESTful", [400, 200001]],
    ["GET /sessions?connected=yes", [400, 200001]],
    ["GET /sessions?groupId=9", [404, 200211]],
    ["GET /sessions/nonsense", [400, 200001]],
    ["GET /sessions/00000000-0000-4000-8000-00000000ffff", [404, 100508]],
    ["GET /events/1-2-3", [400, 100302]],
    ["POST /subscriptions/00000000-0000-4000-8000-000000000001/replay", [400, 200001], {}],
    ["POST /subscriptions/00000000-0000-4000-8000-000000000001/replay", [400, 200001], { from: 1, other: 2 }],
    [
      "POST /subscriptions/00000000-0000-4000-8000-000000000001/replay",
      [400, 200001],
      { from: "2026-02-31T14:00:00Z" },
    ],
    ["POST /subscriptions/00000000-0000-4000-8000-000000000001/skip", [400, 200001], { to: "2026-02-31T14:00:00Z" }],
    ["POST /subscriptions/00000000-0000-4000-8000-000000000001/change", [400, 200001], {}],
    ["POST /subscriptions/00000000-0000-4000-8000-000000000001/change", [400, 100501], { url: "ftp://x" }],
    ["POST /subscriptions/00000000-0000-4000-8000-000000000001/change", [400, 200001], { attemptsMax: 2 }],
    ["POST /subscriptions/00000000-0000-4000-8000-000000000001/change", [400, 200001], { rotationSeconds: 0 }],
    [
      "POST /subscriptions/00000000-0000-4000-8000-000000000001/change",
      [400, 200001],
      { secret: null, rotationSeconds: 9 },
    ],
    ["POST /subscriptions/00000000-0000-4000-8000-000000000001/discard", [400, 200001], {}],
    ["POST /subscriptions/00000000-0000-4000-8000-000000000001/discard", [400, 200001], { eventId: "a", all: true }],
    ["POST /subscriptions/00000000-0000-4000-8000-000000000001/discard", [404, 100303], { eventId: "df09ed59-9-9" }],
    ["GET /subscriptions/00000000-0000-4000-8000-000000000001/dead-letters?cursor=x", [400, 200001]],
    ["GET /subscriptions/00000000-0000-4000-8000-00000000ffff/dead-letters", [404, 100504]],
  ])("%s is a problem with status and code %j", async (request, [status, code], body) => {
    const [method = "", path = ""] = request.split(" ");
    const answer = await call(method, path, body);
    expect(answer).toMatchObject({ status, type: "application/problem+json; charset=utf-8", body: { status, code } });
  });

  it.each([
    ["gzip", 400, { code: 200001, detail: expect.stringContaining('"gzip"') }],
    ["identity", 200, { dryRun: true }],
  ])("a body with the content encoding %s is answered with %i", async (encoding, status, body) => {
    const headers = { "content-type": "application/json", "content-encoding": encoding };
    const url = `${server.url}${adminPath}/subscriptions/${ids[0]}/replay?dryRun=true`;
    const response = await untilAnswered(fetch(url, { method: "POST", headers, body: '{"from":1}' }));
    expect([response.status, await response.json()]).toEqual([status, expect.objectContaining(body)]);
  });

  it("the clients' listener does not serve the admin API", async () => {
    await using clients = await serve({}, { operator: engine.running.operator, audience: "clients" });
    expect((await fetch(`${clients.url}${adminPath}/subscriptions`)).status).toBe(404);
  });
});

it("every operation is in the document, and has answered in these tests unless it is about roles", () => {
  const documented = Object.values(document.paths).flatMap((methods) =>
    Object.values(methods).map(({ operationId }) => String(operationId)),
  );
  expect(documented.toSorted()).toEqual(Object.keys(adminOperations).toSorted());
  const ofRoles = documented.filter((name) => name.endsWith("Role") || name.endsWith("Roles")); // See roles.test.ts.
  expect([...answered, ...ofRoles].toSorted()).toEqual(documented.toSorted());
});
