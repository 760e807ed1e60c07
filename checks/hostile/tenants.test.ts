import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createRandom } from "../harness/random.ts";
import { type Receiver, startReceiver } from "../harness/receiver.ts";
import { cloudEventForms, publishCloudEvents } from "./support/cloud-events.ts";
import { type MqttVersion, mqttVersions, type TenantName, tenantNames, TenantWorld } from "./support/tenant-world.ts";

const httpApis = ["REST GET", "REST POST JSON", "JSON-RPC"] as const;
const id = "ffffffff-0000-4000-8000-000000000001";
/** The filters of every subscriber. */
const filters = ["#", "$x/#"] as const;
/** For each filter, the topic of the last event that it matches. */
const ends = ["end", "$x/end"] as const;
const random = createRandom(58);
const levels = ["a", "b c", "acme", "globex", "shop", "$x", "$tenant", "~!*", ""];

/** Topic names that both tenants use. Some contain a tenant's name, or look like the prefixes that keep tenants apart. */
const plain = ["acme", "globex", "acme/globex", "$x/acme", "$x", "a"];
const topics = [
  ...plain,
  ...Array.from({ length: 14 }, () =>
    [random.pick(["a", "$x", ...levels]), random.pick(levels), random.pick(["a", "acme", "z"])].join("/"),
  ),
].filter((topic, index, all) => all.indexOf(topic) === index);
const matched = topics.filter((topic) => !topic.startsWith("$") || topic === "$x" || topic.startsWith("$x/"));

let world: TenantWorld;
beforeAll(async () => {
  world = await TenantWorld.start();
  for (const tenant of tenantNames) {
    const api = world.api("JSON-RPC", tenant);
    for (const topic of [...topics, ...ends]) await call(api, "open", { topic });
  }
});
afterAll(() => world[Symbol.asyncDispose]());

const other = (tenant: TenantName): TenantName => (tenant === "acme" ? "globex" : "acme");

async function call(api: ReturnType<TenantWorld["api"]>, ...[operation, params]: Parameters<typeof api.call>) {
  const isProof = operation === "getProof" && api.kind === "REST";
  const outcome = await api.call(isProof ? "proof" : operation, params);
  if (!outcome.isGood) throw new Error(`${operation} ${JSON.stringify(params)}: ${outcome.code} ${outcome.message}`);
  return outcome.value;
}

/** A client of a tenant that collects events. */
interface Observer {
  readonly protocol: string;
  readonly tenant: TenantName;
  /** All events until the last ones of both filters, as `topic: content`. They are sorted, because the events of two filters have no order. */
  seen(): Promise<readonly string[]>;
}

function toSeen(given: readonly (readonly [topic: string, content: string])[]): readonly string[] {
  return given.map(([topic, content]) => `${topic}: ${content}`).toSorted();
}

async function observeByMqtt(tenant: TenantName, version: MqttVersion): Promise<Observer> {
  const peer = await world.mqtt(tenant, version, { clientId: "observer" + version });
  peer.send({ cmd: "subscribe", messageId: 1, subscriptions: filters.map((topic) => ({ topic, qos: 1 })) });
  expect((await peer.next("suback")).granted).toEqual([1, 1]);
  const seen = async (): Promise<readonly string[]> => {
    const given: [string, string][] = [];
    while (!ends.every((end) => given.some(([topic]) => topic === end))) {
      const { topic, payload, messageId } = await peer.next("publish");
      given.push([topic, String(payload)]);
      peer.send({ cmd: "puback", messageId });
    }
    await peer.expectQuiet();
    return toSeen(given);
  };
  return { protocol: `MQTT ${version}`, tenant, seen };
}

async function observeByStomp(tenant: TenantName): Promise<Observer> {
  const peer = await world.stomp(tenant);
  await peer.ask("SUBSCRIBE", { id: "1", destination: filters.join(","), ack: "auto" });
  const seen = async (): Promise<readonly string[]> => {
    const given: [string, string][] = [];
    while (!ends.every((end) => given.some(([topic]) => topic === end))) {
      const frame = await peer.any();
      expect(frame?.command).toBe("MESSAGE");
      given.push([frame?.headers["destination"] ?? "", String(frame?.body)]);
      expect(JSON.stringify(frame?.lines)).not.toContain(`by ${other(tenant)}`);
    }
    return toSeen(given);
  };
  return { protocol: "STOMP", tenant, seen };
}

async function observeByTail(tenant: TenantName, format: "interface" | "cloudevents"): Promise<Observer> {
  const query = filters.map((filter) => `topic=${encodeURIComponent(filter)}`).join("&");
  const lines = await world.tail(tenant, `${query}&format=${format}`);
  const seen = async (): Promise<readonly string[]> => {
    const given: (readonly [string, string])[] = [];
    for await (const line of lines) {
      if (line === "") continue;
      expect(line).not.toContain(`by ${other(tenant)}`);
      given.push(readTailed(JSON.parse(line) as TailedEvent));
      if (ends.every((end) => given.some(([topic]) => topic === end))) break;
    }
    return toSeen(given);
  };
  return { protocol: `tail, ${format}`, tenant, seen };
}

interface TailedEvent {
  readonly topic?: string;
  readonly content?: string;
  readonly subject?: string;
  readonly data?: string;
  readonly data_base64?: string;
}

function readTailed(event: TailedEvent): readonly [string, string] {
  if (event.topic !== undefined) return [event.topic, decode(event.content ?? "")];
  return [event.subject ?? "", event.data ?? decode(event.data_base64 ?? "")];
}

async function observeByCallback(tenant: TenantName, kind: "REST GET" | "JSON-RPC"): Promise<Observer> {
  const receiver: Receiver = await startReceiver();
  const api = world.api(kind, tenant);
  for (const topic of filters) await call(api, "subscribe", { topic, url: receiver.url });
  const seen = async (): Promise<readonly string[]> => {
    const has = (end: string): boolean => receiver.accepted().some(({ topic }) => topic === end);
    await receiver.waitFor("the ends", () => ends.every(has));
    const given = receiver.accepted().map(({ topic, content }) => [topic, decode(content)] as const);
    await receiver[Symbol.asyncDispose]();
    return toSeen(given);
  };
  return { protocol: `callback by ${kind}`, tenant, seen };
}

function decode(content: string): string {
  return Buffer.from(content, "base64").toString();
}

/** Publishes an event to every topic through each protocol and form of request. */
async function publishAll(tenant: TenantName): Promise<void> {
  for (const kind of httpApis) {
    for (const topic of topics) await call(world.api(kind, tenant), "publish", { topic, content: `by ${tenant}` });
  }
  for (const form of cloudEventForms) {
    for (const topic of topics) {
      const answer = await world.send(tenant, publishCloudEvents(form, [topic], `by ${tenant}`));
      expect(answer, topic).toContain('"SUCCESS"');
      expect(answer).not.toContain(`${tenant}/${topic}`);
    }
  }
  for (const version of mqttVersions) {
    const peer = await world.mqtt(tenant, version, { clientId: "publisher" });
    for (const topic of topics) {
      peer.send({ cmd: "publish", qos: 1, messageId: 1, topic, payload: `by ${tenant}` });
      expect((await peer.next("puback")).reasonCode ?? 0).toBe(0);
    }
  }
  const peer = await world.stomp(tenant);
  for (const destination of topics) await peer.ask("SEND", { destination }, `by ${tenant}`);
}

it("a tenant gets only its own events through every protocol, under the topic names that it used", async () => {
  const observers = await Promise.all(
    tenantNames.flatMap((tenant) => [
      ...mqttVersions.map((version) => observeByMqtt(tenant, version)),
      observeByStomp(tenant),
      observeByCallback(tenant, "REST GET"),
      observeByCallback(tenant, "JSON-RPC"),
      observeByTail(tenant, "interface"),
      observeByTail(tenant, "cloudevents"),
    ]),
  );
  await Promise.all(tenantNames.map(publishAll));
  for (const tenant of tenantNames) {
    for (const topic of ends) {
      await call(world.api("REST GET", tenant), "publish", { topic, content: `by ${tenant}` });
    }
  }
  const copies = httpApis.length + mqttVersions.length + cloudEventForms.length + 1;
  for (const { protocol, tenant, seen } of observers) {
    const expected = [...matched.flatMap((topic) => Array.from({ length: copies }, () => topic)), ...ends];
    expect([protocol, tenant, await seen()]).toEqual([
      protocol,
      tenant,
      toSeen(expected.map((topic) => [topic, `by ${tenant}`])),
    ]);
  }
});

describe.each(httpApis)("tenants by %s", (kind) => {
  it.each(tenantNames)(
    "%s lists and reads its own topics and events under its own names, and the other tenant cannot read its events",
    async (tenant) => {
      const api = world.api(kind, tenant);
      const page = await call(api, "list", { pageIndex: 0, pageSize: 50 });
      const infos = (page as { topicInfoList: { topicName: string }[] }).topicInfoList;
      expect(page).toMatchObject({ total: topics.length + ends.length });
      expect(infos.map(({ topicName }) => topicName).toSorted()).toEqual([...topics, ...ends].toSorted());
      expect(await call(api, "exist", { topic: `${tenant}/acme` })).toBe(topics.includes(`${tenant}/acme`));
      for (const topic of topics) {
        expect(await call(api, "state", { topic })).toMatchObject({ topicName: topic });
        const { eventId } = (await call(api, "publish", { topic, content: `by ${tenant}` })) as { eventId: string };
        expect(await call(api, "getEvent", { eventId })).toMatchObject({ topic, eventId });
        const stranger = world.api(kind, other(tenant));
        const missing = { isGood: false, code: 100_303, message: `eventId does not exist: "${eventId}"` };
        expect(await stranger.call("getEvent", { eventId })).toMatchObject(missing);
        expect(await stranger.call(kind === "JSON-RPC" ? "getProof" : "proof", { eventId })).toMatchObject(missing);
        const url = "http://127.0.0.1:65000/";
        expect(await stranger.call("subscribe", { topic: "#", url, offset: eventId })).toMatchObject(missing);
      }
    },
  );

  it("the same topic name has a different contract address for each tenant", async () => {
    const addresses = await Promise.all(
      tenantNames.map(async (tenant) => call(world.api(kind, tenant), "state", { topic: "a" })),
    );
    const texts = addresses.map((state) => (state as { topicAddress: string }).topicAddress);
    expect(new Set(texts).size).toBe(2);
  });

  it("both tenants may use the same subscriptionId, and unsubscribing one leaves the other's subscription", async () => {
    const receivers = { acme: await startReceiver(), globex: await startReceiver() };
    for (const tenant of tenantNames) {
      const order = { topic: "a", url: receivers[tenant].url, subscriptionId: id };
      expect(await call(world.api(kind, tenant), "subscribe", order)).toBe(id);
    }
    expect(await call(world.api(kind, "globex"), "unSubscribe", { subscriptionId: id })).toBe(true);
    const again = await world.api(kind, "globex").call("unSubscribe", { subscriptionId: id });
    expect(again).toMatchObject({ code: 100_504, message: `subscriptionId does not exist: "${id}"` });
    for (const tenant of tenantNames) {
      await call(world.api(kind, tenant), "publish", { topic: "a", content: `by ${tenant}` });
    }
    const [event] = await receivers.acme.waitForCount(1);
    expect([event?.topic, decode(event?.content ?? "")]).toEqual(["a", "by acme"]);
    expect(receivers.acme.attempts.map(({ subscriptionId }) => subscriptionId)).toEqual([id]);
    expect(receivers.globex.accepted()).toEqual([]);
    expect(await call(world.api(kind, "acme"), "unSubscribe", { subscriptionId: id })).toBe(true);
    for (const tenant of tenantNames) await receivers[tenant][Symbol.asyncDispose]();
  });

  it("no refusal names a tenant", async () => {
    const api = world.api(kind, "acme");
    const url = "http://127.0.0.1:65000/";
    const outcomes = [
      await api.call("state", { topic: "none" }),
      await api.call("publish", { topic: "none", content: "x" }),
      await api.call("open", { topic: "none/" }),
      await api.call("open", { topic: "+" }),
      await api.call("open", { topic: "n".repeat(252) }),
      await api.call("open", { topic: "n".repeat(257) }),
      await api.call("subscribe", { topic: "none", url }),
      await api.call("subscribe", { topic: "#/none", url }),
      await api.call("subscribe", { topic: "#", url, subscriptionId: "none" }),
      await api.call("unSubscribe", { subscriptionId: "ffffffff-0000-4000-8000-000000000002" }),
    ];
    for (const outcome of outcomes) expect(outcome).toMatchObject({ isGood: false });
    expect(JSON.stringify(outcomes)).not.toMatch(/acme|globex|shop|tenant/);
  });

  it.each(tenantNames)(
    "%s gets no proof of its own event, because a proof may contain another tenant's names",
    async (tenant) => {
      const api = world.api(kind, tenant);
      const { eventId } = (await call(api, "publish", { topic: "a", content: "x" })) as { eventId: string };
      const outcome = await api.call(kind === "JSON-RPC" ? "getProof" : "proof", { eventId });
      expect(outcome).toMatchObject({ isGood: false, code: 100_702 });
    },
  );
});

const subscribe = (topic: string) => ({ cmd: "subscribe", messageId: 2, subscriptions: [{ topic, qos: 1 }] });

describe.each(mqttVersions)("tenants over MQTT, protocol level %d", (version) => {
  const publish = { cmd: "publish", qos: 1, messageId: 1 };

  it("two clients with the same identifier and filters each get only their own tenant's retained event, will and shared event", async () => {
    const [retained, will, share] = ["retained", "will", "share"].map((name) => `${name}/${version}`);
    const watchers = new Map<TenantName, Awaited<ReturnType<TenantWorld["mqtt"]>>>();
    for (const tenant of tenantNames) {
      const left = { topic: will, payload: Buffer.from(`will of ${tenant}`), qos: 1, retain: false };
      const peer = await world.mqtt(tenant, version, { clientId: "same", will: left });
      peer.send({ ...publish, topic: retained, payload: `kept by ${tenant}`, retain: true });
      await peer.next("puback");
      watchers.set(tenant, await world.mqtt(tenant, version, { clientId: "watcher" }));
      for (const topic of [`+/${version}`, `$share/s/share/#`]) {
        watchers.get(tenant)?.send(subscribe(topic));
        expect((await watchers.get(tenant)?.next("suback"))?.granted).toEqual([1]);
        if (topic.startsWith("$share")) break;
        const kept = await watchers.get(tenant)?.next("publish");
        expect([kept?.topic, String(kept?.payload), kept?.retain]).toEqual([retained, `kept by ${tenant}`, true]);
        watchers.get(tenant)?.send({ cmd: "puback", messageId: kept?.messageId });
      }
      await peer.expectQuiet(); // the other tenant's client did not take over its session
      peer.drop();
    }
    for (const tenant of tenantNames) {
      const watcher = watchers.get(tenant);
      const publisher = await world.mqtt(tenant, version, { clientId: "publisher" });
      publisher.send({ ...publish, topic: share, payload: `shared by ${tenant}` });
      await publisher.next("puback");
      const seen: string[] = [];
      while (seen.length < 3) {
        const given = await watcher?.next("publish");
        seen.push(`${given?.topic}: ${String(given?.payload)}`);
        watcher?.send({ cmd: "puback", messageId: given?.messageId });
      }
      const shared = `${share}: shared by ${tenant}`;
      expect(seen.toSorted()).toEqual([shared, shared, `${will}: will of ${tenant}`]);
      await watcher?.expectQuiet();
    }
  });
});

it("tenants over STOMP may use the same subscriptionId", async () => {
  const peers = { acme: await world.stomp("acme"), globex: await world.stomp("globex") };
  for (const tenant of tenantNames) {
    const headers = { id, destination: "a", ack: "client", "svc-subscriptionId": id };
    await peers[tenant].ask("SUBSCRIBE", headers);
  }
  for (const tenant of tenantNames) {
    await call(world.api("REST GET", tenant), "publish", { topic: "a", content: `by ${tenant}` });
    const frame = await peers[tenant].any();
    expect([frame?.command, frame?.headers["destination"], String(frame?.body)]).toEqual([
      "MESSAGE",
      "a",
      `by ${tenant}`,
    ]);
    peers[tenant].send("ACK", { id: frame?.headers["ack"] ?? "" });
  }
});

it("a tenant's key with the right to administer opens no operators' page, and an operator sees the real topic names", async () => {
  for (const path of ["/admin/listSubscription", "/admin/skippedEntries", "/metrics"]) {
    expect(await world.page("acme", path)).toContain('"code":100702');
  }
  expect(await world.page("acme", "/health/ready")).toBe('{"status":"ready"}');
  const listing = await world.page("operator", "/admin/listSubscription");
  for (const tenant of tenantNames) expect(listing).toContain(`"topicName":"${tenant}/#"`);
  const api = world.api("REST GET", "operator");
  expect(await call(api, "state", { topic: "acme/a" })).toMatchObject({ topicName: "acme/a" });
  expect(await call(api, "state", { topic: "$tenant/acme/$x" })).toMatchObject({ topicName: "$tenant/acme/$x" });
  const { eventId } = (await call(api, "publish", { topic: "acme/a", content: "x" })) as { eventId: string };
  expect(await call(api, "getProof", { eventId })).toMatchObject({ event: { topic: "acme/a" } });
});
