import { BrokerError, operationNames, restPathOf, skippedListingSchema, subscriptionListingSchema } from "@stele/wire";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import type { GroupHealth } from "../../engine/broker.ts";
import { parseSubscriptionId } from "../../domain/subscription.ts";
import { sampleSubscription, sampleSubscriptionId } from "../testing/recording-broker.ts";
import { operatorsListener } from "./operators-path.ts";
import { serve, testMetrics } from "../testing/serve.ts";

const ready: GroupHealth = { groupId: "1", ready: true, reason: undefined, indexedBlock: 5 };
/** A group with every field that the health of a group can have. */
const whole: Required<GroupHealth> = {
  ...ready,
  reason: "r",
  warning: "w",
  transactionFailure: "t",
  role: "follows",
  subscriptions: 1,
  held: { suspended: 1, paused: 1, locked: 1 },
  lag: { events: 1, seconds: 1 },
  headBlock: 6,
  chain: { chainId: 1 },
};
const notReady: GroupHealth = { groupId: "2", ready: false, reason: "chain cannot be reached", indexedBlock: 3 };

interface ReadinessSchema {
  readonly properties: { readonly groups: { readonly items: { readonly properties: object } } };
}

/** The part of the OpenAPI document that describes readiness. */
interface OpenApi {
  readonly paths: {
    readonly "/health/ready": {
      readonly get: {
        readonly responses: {
          readonly 200: {
            readonly content: { readonly "application/json": { readonly schema: ReadinessSchema } };
          };
        };
      };
    };
  };
}

function listeners() {
  return [{ name: operatorsListener, address: "http://127.0.0.1:8081" }];
}

function refuse(): never {
  throw new BrokerError("accessDenied");
}

describe("the listing of subscriptions", () => {
  it.each(["GET", "POST"])("answers %s with node, identifier and exactly the documented fields", async (method) => {
    await using server = await serve({}, { advertisedAddress: "broker.example:8080" });
    const response = await fetch(`${server.url}/admin/listSubscription`, { method });
    const listing: unknown = await response.json();
    expect(response.status).toBe(200);
    expect(listing).toEqual({
      "broker.example:8080": {
        [sampleSubscriptionId]: {
          interfaceType: "RESTful",
          notifyingEventCount: "7",
          notifiedEventCount: "12",
          notifyTimeStamp: "2026-02-03 04:05:06",
          subscribeId: sampleSubscriptionId,
          topicName: "a/#",
        },
      },
    });
    expect(subscriptionListingSchema.safeParse(listing).error).toBeUndefined();
  });

  it("shows the state of suspended subscriptions", async () => {
    const id = parseSubscriptionId("1b3a1f5e-7c5d-4d0e-9f61-3f8f7b0f2a11");
    const subscriptions = [sampleSubscription, { ...sampleSubscription, id, state: "suspended" as const }];
    await using server = await serve({
      listSubscriptions: () => Promise.resolve([{ address: "node", subscriptions }]),
    });
    const listing: unknown = await (await fetch(`${server.url}/admin/listSubscription`)).json();
    const entries = subscriptionListingSchema.parse(listing)["node"] ?? {};
    expect(Object.values(entries).map(({ state }) => state)).toEqual([undefined, "suspended"]);
  });

  it("names the node by its listening address if none is advertised, and is empty without subscriptions", async () => {
    await using server = await serve({
      listSubscriptions: () => Promise.resolve([{ address: undefined, subscriptions: [] }]),
    });
    const response = await fetch(`${server.url}/admin/listSubscription`);
    expect(await response.json()).toEqual({ [new URL(server.url).host]: {} });
  });

  it("a failure is HTTP 200 with a code", async () => {
    await using server = await serve({ listSubscriptions: () => Promise.reject(new Error("disk")) });
    const response = await fetch(`${server.url}/admin/listSubscription`);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ code: 200000, message: "unknown error" });
    expect(server.errors).toHaveLength(1);
  });
});

describe("skipped entries", () => {
  it("are listed with their sender and reason, filtered by the query", async () => {
    await using server = await serve();
    const response = await fetch(`${server.url}/admin/skippedEntries?groupId=2&limit=7`);
    const listing: unknown = await response.json();
    expect(response.status).toBe(200);
    expect(listing).toMatchObject({
      groupId: "1",
      entries: [{ reason: "wrong-count", blockNumber: 1120, logIndex: 5 }],
    });
    expect(skippedListingSchema.safeParse(listing).error).toBeUndefined();
    await fetch(`${server.url}/admin/skippedEntries`);
    expect(server.calls.map(({ call }) => call)).toEqual([
      { groupId: "2", limit: "7" },
      { groupId: undefined, limit: undefined },
    ]);
  });

  it("a failure is HTTP 200 with a code", async () => {
    await using server = await serve({
      listSkippedEntries: () => Promise.reject(new BrokerError("groupUnknown", { details: '"9"' })),
    });
    const response = await fetch(`${server.url}/admin/skippedEntries?groupId=9`);
    expect([response.status, await response.json()]).toEqual([200, { code: 200211, message: 'unknown group: "9"' }]);
  });
});

describe("health", () => {
  it("live is 200", async () => {
    await using server = await serve();
    const response = await fetch(`${server.url}/health/live`);
    expect([response.status, await response.json()]).toEqual([200, { status: "live" }]);
  });

  it("ready is 200 if every group is ready", async () => {
    await using server = await serve({ health: () => [ready] });
    const response = await fetch(`${server.url}/health/ready`);
    const groups = [{ groupId: "1", ready: true, indexedBlock: 5 }];
    expect([response.status, await response.json()]).toEqual([200, { status: "ready", groups }]);
  });

  it.each([
    [[ready, notReady], 200, "partly ready"],
    [[notReady], 503, "not ready"],
    [[notReady, { ...notReady, groupId: "3" }], 503, "not ready"],
  ] as const)(
    "/health/ready says which groups are not ready and why, and answers 503 if none is ready: %j",
    async (groups, status, text) => {
      await using server = await serve({ health: () => groups });
      const response = await fetch(`${server.url}/health/ready`);
      const expected = groups.map((group) => JSON.parse(JSON.stringify(group)) as unknown);
      expect([response.status, await response.json()]).toEqual([status, { status: text, groups: expected }]);
    },
  );

  it("ready adds the warnings of parts that the engine does not know to each group", async () => {
    const groups = [ready, { ...ready, warning: "w" }];
    await using server = await serve({ health: () => groups }, { findWarnings: () => [undefined, "it is away"] });
    const response = await fetch(`${server.url}/health/ready`);
    const warned = [{ warning: "it is away" }, { warning: "w; it is away" }];
    expect(await response.json()).toMatchObject({ status: "ready", groups: warned });
  });

  it("ready reports the state of the node in its cluster", async () => {
    const node = { address: "node-a:8080", isMember: false, reason: "it has not joined" };
    await using server = await serve({ health: () => [notReady], node: () => node });
    const response = await fetch(`${server.url}/health/ready`);
    expect([response.status, await response.json()]).toMatchObject([503, { status: "not ready", node }]);
  });

  it.each([
    ["of a cluster", { node: () => ({ address: "node-a:8080", isMember: true, reason: undefined }) }, "node"],
    ["to a caller who may not see more than the status", { authorize: refuse }, "status"],
  ] as const)("ready %s is as /openapi.json describes it", async (_whose, broker, last) => {
    await using server = await serve({ health: () => [ready, whole], ...broker });
    const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as OpenApi;
    const { schema } = document.paths["/health/ready"].get.responses[200].content["application/json"];
    const body = (await (await fetch(`${server.url}/health/ready`)).json()) as object;
    const validate = new Ajv2020().compile(schema);
    expect([validate(body), validate.errors]).toEqual([true, null]);
    expect(Object.keys(body)).toContain(last);
    expect(Object.keys(schema.properties)).toEqual(expect.arrayContaining(Object.keys(body)));
    const groupFields = Object.keys(schema.properties.groups.items.properties);
    expect(groupFields.toSorted()).toEqual(Object.keys(whole).toSorted());
  });

  it.each([
    ["1", 200, { status: "ready", groups: [{ groupId: "1" }] }],
    ["2", 503, { status: "not ready", groups: [{ groupId: "2" }] }],
  ])("ready?groupId=%s answers %i for that group alone", async (asked, status, body) => {
    await using server = await serve({ health: (_, id) => [ready, notReady].filter(({ groupId }) => groupId === id) });
    const response = await fetch(`${server.url}/health/ready?groupId=${asked}`);
    expect([response.status, await response.json()]).toMatchObject([status, body]);
  });

  it.each(["", "%20"])("ready?groupId=%s names no group, and answers for all of them", async (blank) => {
    await using server = await serve({ health: (_, id) => (id === undefined ? [ready, notReady] : []) });
    const response = await fetch(`${server.url}/health/ready?groupId=${blank}`);
    expect(await response.json()).toMatchObject({
      status: "partly ready",
      groups: [{ groupId: "1" }, { groupId: "2" }],
    });
  });

  it.each([
    ["groupUnknown", 404, 200211],
    ["credentialRefused", 401, 100701],
    ["accessDenied", 403, 100702],
    ["storeUnreachable", 503, 200207],
  ] as const)("ready?groupId=3 answers the error %s with status %i", async (name, status, code) => {
    const health = (): never => {
      throw new BrokerError(name);
    };
    await using server = await serve({ health });
    const response = await fetch(`${server.url}/health/ready?groupId=3`);
    expect([response.status, await response.json()]).toMatchObject([status, { code }]);
  });
});

describe("metrics, index and access", () => {
  it("answers /metrics with the content type of the Prometheus text format", async () => {
    await using server = await serve();
    const response = await fetch(`${server.url}/metrics`);
    expect(response.headers.get("content-type")).toMatch(/^text\/plain; version=0.0.4/);
    expect(await response.text()).toBe("events 1\n");
  });

  it("answers /metrics with 500 and logs the error once if rendering fails", async () => {
    const metrics = { ...testMetrics, render: () => Promise.reject(new Error("inside")) };
    await using server = await serve({}, { metrics });
    const response = await fetch(`${server.url}/metrics`);
    expect([response.status, await response.json()]).toEqual([500, { code: 200000, message: "unknown error" }]);
    expect(server.errors).toHaveLength(1);
  });

  it.each(["", "stele"])(
    "the index names pages that answer under %j, and the OpenAPI document has every REST path",
    async (basePath) => {
      await using server = await serve({}, { basePath });
      const index = (await (await fetch(server.url)).json()) as Record<string, string>; // Checked just below.
      expect(index).toMatchObject({ defaultGroup: "1" });
      expect(await (await fetch(`${server.url}/`)).json()).toEqual(index);
      for (const name of ["subscriptions", "skippedEntries", "openapi", "asyncapi", "live", "ready", "metrics"]) {
        expect((await fetch(new URL(index[name] ?? "", server.url))).status).toBe(200);
      }
      const document = await (await fetch(`${server.url}/openapi.json`)).json();
      for (const name of operationNames) expect(document).toHaveProperty(["paths", restPathOf(name)]);
    },
  );

  it.each(["/nothing", "/admin", "/health", "/%zz", "/restful"])(
    "answers %s with 404 or 400 and a code",
    async (path) => {
      await using server = await serve();
      const response = await fetch(`${server.url}${path}`);
      expect([404, 400]).toContain(response.status);
      expect(await response.json()).toMatchObject({ code: 200001 });
    },
  );
});

it.each(["/metrics", "/admin/listSubscription", "/admin/skippedEntries", "/chain"])(
  "serves %s at the operators' listener, not at the clients' listener",
  async (path) => {
    const chain = { read: () => Promise.resolve('"0x7"') };
    await using clients = await serve({}, { audience: "clients", chain });
    await using operators = await serve({}, { audience: "operators", chain });
    expect((await fetch(`${clients.url}${path}`)).status).toBe(404);
    expect((await fetch(`${operators.url}${path}`)).status).not.toBe(404);
  },
);

describe("the answer to a path for operators at the clients' listener", () => {
  const chain = { read: () => Promise.resolve('"0x7"') };

  it.each([
    ["/metrics", { listeners }, true],
    ["/admin/v1/subscriptions", { listeners }, true],
    ["/chain", { listeners, chain }, true],
    ["/chain", { listeners }, false],
    ["/chain", { listeners: () => [], chain }, false],
    ["/metrics", {}, false],
  ])("names the operators' port for %s (%o) only if it serves the path: %s", async (path, options, names) => {
    await using clients = await serve({}, { audience: "clients", ...options });
    const { message } = (await (await fetch(`${clients.url}${path}`)).json()) as { readonly message: string };
    const advice = names ? "operators have a port of their own, adminPort" : "GET / lists what there is";
    expect(message).toContain(advice);
  });
});

it.each([
  [8.64e15, { expiresAt: "+275760-09-13T00:00:00.000Z" }],
  [8.64e15 + 1, {}],
  [1e300, {}],
])("GET /access shows the expiry of a credential only if a date can hold it (%d)", async (expiresAt, shown) => {
  const rightsOf = () => ({ principal: "p", expiresAt, actions: [] });
  await using server = await serve({ rightsOf });
  const response = await fetch(`${server.url}/access`);
  expect(await response.json()).toEqual({ principal: "p", ...shown, actions: [], serves: ["clients", "operators"] });
});
