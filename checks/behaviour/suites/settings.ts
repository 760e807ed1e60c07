import { describe, expect, it } from "vitest";
import { codeOf, take } from "../../harness/client.ts";
import { apiNames, apiOver } from "../../harness/apis.ts";
import { HttpClient } from "../../harness/http-client.ts";
import { useReceivers, useWorld } from "../../harness/use.ts";
import type { RunningWorld, World } from "../../harness/world.ts";

const env = {
  STELE_BASE_PATH: "/events/v1",
  STELE_EXTENSION_PREFIX: "acme-",
  STELE_DEFAULT_GROUP: "7",
  STELE_CONTENT_BYTES_MAX: "10",
  STELE_EXTENSIONS_BYTES_MAX: "16",
};

/** Tests the settings that change the interface. */
export function describeSettings(world: World): void {
  describe("all settings that change the interface, on one broker", () => {
    const running = useWorld(world, { env, addressOf: (index) => `node-${index + 1}:8080` });
    describeNames(world, running);
    describeLimits(world, running);
  });
  // The nodes of a cluster always coordinate.
  if (world.isCluster !== true) describeNoCoordination(world);
}

function describeNames(world: World, running: () => RunningWorld): void {
  const test = world.isSlow ? it.concurrent : it;

  describe(`STELE_BASE_PATH on the ${world.name}`, () => {
    test.each(apiNames)("%s works under the base path", async (apiName) => {
      const { client, broker } = running();
      expect(new URL(broker.url).pathname).toBe("/events/v1");
      const api = apiOver(client.http, apiName);
      expect(take("open", await api.call("open", { topic: apiName }))).toBe(true);
      const sent = take("publish", await api.call("publish", { topic: apiName, content: "x" }));
      expect(take("getEvent", await api.call("getEvent", { eventId: sent.eventId })).topic).toBe(apiName);
    });

    it.each([
      "/admin/listSubscription",
      "/access",
      "/health/live",
      "/health/ready",
      "/metrics",
      "/openapi.json",
      "/asyncapi.json",
    ])("GET %s under the base path returns 200", async (path) => {
      expect((await running().client.http.send({ method: "GET", path })).status).toBe(200);
    });

    it("a path without the base path returns 404 and changes nothing", async () => {
      await using bare = new HttpClient(new URL(running().broker.url).origin);
      const total = (await running().client.list()).total;
      for (const path of ["/rest/open?topic=bare", "/health/live", "/admin/listSubscription"]) {
        expect((await bare.send({ method: "GET", path })).status).toBe(404);
      }
      expect((await running().client.list()).total).toBe(total);
    });
  });

  it(`the listing of the ${world.name} names each node by its advertisedAddress`, async () => {
    const { client, addresses } = running();
    expect(addresses).toContain("node-1:8080");
    expect(Object.keys(await client.listSubscriptions()).toSorted()).toEqual(addresses);
  });

  describe(`STELE_EXTENSION_PREFIX on the ${world.name}`, () => {
    test.each(apiNames)("%s accepts extensions with the prefix", async (apiName) => {
      const { client } = running();
      const api = apiOver(client.http, apiName);
      await client.open(apiName);
      const extensions = { "acme-format": "json" };
      const sent = take("publish", await api.call("publish", { topic: apiName, content: "x", extensions }));
      expect((await client.getEvent(sent.eventId)).extensions).toEqual(extensions);
    });

    it("JSON-RPC refuses another prefix with 100206; REST ignores it like any unknown parameter", async () => {
      const { client } = running();
      await client.open("other");
      expect(await codeOf(client.publish("other", "x", { "svc-format": "json" }))).toBe(100206);
      const rest = apiOver(client.http, "REST GET");
      const call = { topic: "other", content: "x", extensions: { "svc-format": "json" } };
      const sent = take("publish", await rest.call("publish", call));
      expect(sent.eventId).toMatch(/-1-/);
      expect((await client.getEvent(sent.eventId)).extensions).toEqual({});
    });
  });

  describe(`STELE_DEFAULT_GROUP on the ${world.name}`, () => {
    test.each(apiNames)("%s: a call without groupId uses group 7, and group 1 is unknown", async (apiName) => {
      const api = apiOver(running().client.http, apiName);
      expect(await api.call("open", { topic: apiName })).toMatchObject({ isGood: true });
      expect(await api.call("exist", { topic: apiName, groupId: "7" })).toMatchObject({ value: true });
      expect(await api.call("exist", { topic: apiName, groupId: "1" })).toMatchObject({ code: 200211 });
    });
  });
}

function describeNoCoordination(world: World): void {
  describe(`STELE_COORDINATION=none on the ${world.name}`, () => {
    const running = useWorld(world, { env: { STELE_COORDINATION: "none" } });
    const receive = useReceivers();

    it("JSON-RPC unSubscribe returns 100601, and REST unSubscribe removes the subscription (INTERFACE.md, JSON-RPC rule 1)", async () => {
      const { client } = running();
      const receiver = await receive();
      await client.open("lone");
      const subscriptionId = await client.subscribe({ topic: "lone", url: receiver.url });
      const rpc = apiOver(client.http, "JSON-RPC");
      expect(await rpc.call("unSubscribe", { subscriptionId })).toMatchObject({
        isGood: false,
        code: 100601,
        rpcCode: -32001,
      });
      await client.publish("lone", "x");
      await receiver.waitForCount(1);
      expect(await client.unSubscribe(subscriptionId)).toBe(true);
      expect(await client.findSubscription(subscriptionId)).toBeUndefined();
    });

    it("without coordination, topics and events survive a restart, and subscriptions do not", async () => {
      const world = running();
      await world.client.open("lasting");
      const sent = await world.client.publish("lasting", "x");
      const event = await world.client.getEvent(sent.eventId);
      await world.client.subscribe({ topic: "lasting", url: "http://127.0.0.1:65535/" });
      await world.stop();
      await world.resume();
      expect(await world.client.getEvent(sent.eventId)).toEqual(event);
      expect(Object.values(await world.client.listSubscriptions())).toEqual([{}]);
    });
  });
}

function describeLimits(world: World, running: () => RunningWorld): void {
  describe(`configured limits on the ${world.name}`, () => {
    it("a publish at contentBytesMax and extensionsBytesMax succeeds, and one byte more returns 100201 or 100204", async () => {
      const { client } = running();
      await client.open("bounded");
      expect(await codeOf(client.publish("bounded", "0123456789", { "acme-a": "6789012345" }))).toBeUndefined();
      expect(await codeOf(client.publish("bounded", "0123456789x"))).toBe(100201);
      expect(await codeOf(client.publish("bounded", "x", { "acme-a": "6789012345x" }))).toBe(100204);
      expect((await client.state("bounded")).sequenceNumber).toBe(1);
    });
  });
}
