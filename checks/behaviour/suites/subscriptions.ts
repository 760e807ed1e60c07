import { createHmac, randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { answerStatus } from "../../harness/behaviours.ts";
import { codeOf, type SendResult } from "../../harness/client.ts";
import { accept } from "../../harness/receiver.ts";
import { until, untilHolds } from "../../harness/until.ts";
import { useReceivers } from "../../harness/use.ts";
import type { RunningWorld, World } from "../../harness/world.ts";
import { idsOf, publishMany } from "./publishes.ts";

/** Which events a subscription receives, where it starts, and how it resumes (INTERFACE.md, States, Events, SubscriptionListing). */
export function describeSubscriptions(world: World, running: () => RunningWorld): void {
  const test = world.isSlow ? it.concurrent : it;
  const receive = useReceivers();

  describe(`the admin listing on the ${world.name}`, () => {
    it("the listing has the subscriptions by node, each with exactly the documented fields (INTERFACE.md, SubscriptionListing)", async () => {
      const { client, addresses } = running();
      const receiver = await receive();
      await client.open("listed/a");
      const before = Date.now();
      const id = await client.subscribe({ topic: "listed/#", url: receiver.url });
      const listing = await client.listSubscriptions();
      // Nodes without a subscription are listed too.
      expect(Object.keys(listing).toSorted()).toEqual(addresses);
      const all = Object.values(listing).flatMap((node) => Object.entries(node));
      const entries = all.filter(([key]) => key === id);
      expect(entries).toEqual([
        [
          id,
          {
            interfaceType: "RESTful",
            notifyingEventCount: "0",
            notifiedEventCount: "0",
            notifyTimeStamp: expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/),
            subscribeId: id,
            topicName: "listed/#",
          },
        ],
      ]);
      const stamp = Date.parse(`${entries[0]?.[1].notifyTimeStamp.replace(" ", "T")}Z`);
      expect(stamp).toBeGreaterThan(before - 1001);
      expect(stamp).toBeLessThan(Date.now() + 1);
    });

    it("GET and POST /admin/listSubscription name the same nodes", async () => {
      const { client } = running();
      const [get, post] = [
        await client.http.send({ method: "GET", path: "/admin/listSubscription" }),
        await client.http.send({ method: "POST", path: "/admin/listSubscription" }),
      ];
      expect(get.status).toBe(200);
      expect(get.headers["content-type"]).toMatch(/^application\/json/);
      expect(Object.keys(post.json() as object)).toEqual(Object.keys(get.json() as object));
    });
  });

  describe(`where a subscription starts on the ${world.name}`, () => {
    test("without an offset, and with OFFSET_LAST, a subscription starts after the newest event", async () => {
      const { client } = running();
      await publishMany(client, "start/1", 3);
      const receivers = [await receive(), await receive()];
      await client.subscribe({ topic: "start/1", url: receivers[0]?.url ?? "" });
      await client.subscribe({ topic: "start/1", url: receivers[1]?.url ?? "", offset: "OFFSET_LAST" });
      const [sent] = await publishMany(client, "start/1", 1);
      for (const receiver of receivers) expect(idsOf(await receiver.waitForCount(1))).toEqual([sent?.eventId]);
    });

    test("OFFSET_FIRST starts with the first event, and continues with new ones", async () => {
      const { client } = running();
      const old = await publishMany(client, "start/2", 5);
      const receiver = await receive();
      await client.subscribe({ topic: "start/2", url: receiver.url, offset: "OFFSET_FIRST" });
      const fresh = await publishMany(client, "start/2", 2);
      expect(idsOf(await receiver.waitForCount(7))).toEqual(idsOf([...old, ...fresh]));
    });

    test("an eventId as offset starts delivery at the event after it", async () => {
      const { client } = running();
      const sent = await publishMany(client, "start/3", 5);
      const receiver = await receive();
      await client.subscribe({ topic: "start/3", url: receiver.url, offset: sent[1]?.eventId ?? "" });
      expect(idsOf(await receiver.waitForCount(3))).toEqual(idsOf(sent.slice(2)));
    });

    test("a pattern replays the events of all its topics in chain order", async () => {
      const { client } = running();
      const sent: SendResult[] = [];
      for (const topic of ["p/a", "p/b", "p/a", "p/c", "p/b"]) sent.push(...(await publishMany(client, topic, 1)));
      const receiver = await receive();
      await client.subscribe({ topic: "p/#", url: receiver.url, offset: "OFFSET_FIRST" });
      expect(idsOf(await receiver.waitForCount(5))).toEqual(idsOf(sent));
    });

    test.each([
      ["OFFSET_NONE", 100302],
      ["ffffffff-1-1", 100303],
      ["ffffffff-1-99999999", 100304],
    ])("offset %s is refused with %d and creates no subscription", async (offset, code) => {
      const { client } = running();
      await client.open("start/4");
      const subscriptionId = randomUUID();
      const call = client.subscribe({ topic: "start/4", url: "http://127.0.0.1:65535/", offset, subscriptionId });
      expect(await codeOf(call)).toBe(code);
      expect(await client.findSubscription(subscriptionId)).toBeUndefined();
    });
  });

  describe(`resuming a subscription on the ${world.name}`, () => {
    test("subscribe with a known identifier and a new url returns the identifier and continues from the cursor", async () => {
      const { client } = running();
      const [before, after] = [await receive(), await receive()];
      await client.open("continued/2");
      const subscriptionId = await client.subscribe({ topic: "continued/2", url: before.url });
      const first = await publishMany(client, "continued/2", 3);
      await before.waitForCount(3);
      await before.refuse();
      const second = await publishMany(client, "continued/2", 3);
      const again = await client.subscribe({ topic: "continued/2", url: after.url, subscriptionId });
      expect(again).toBe(subscriptionId);
      expect(idsOf(await after.waitForCount(3))).toEqual(idsOf(second));
      expect(idsOf(before.accepted())).toEqual(idsOf(first));
      const entry = await until("all events are counted", async () => {
        const found = await client.findSubscription(subscriptionId);
        return found?.notifiedEventCount === "6" && found;
      });
      expect(entry).toMatchObject({ notifyingEventCount: "0", interfaceType: "RESTful" });
    });

    test("subscribe with a known identifier in upper case returns it in lower case", async () => {
      const { client } = running();
      await client.open("continued/3");
      const subscriptionId = await client.subscribe({ topic: "continued/3", url: "http://127.0.0.1:65535/" });
      const upper = subscriptionId.toUpperCase();
      const again = await client.subscribe({
        topic: "continued/3",
        url: "http://127.0.0.1:65535/",
        subscriptionId: upper,
      });
      expect(again).toBe(subscriptionId);
    });

    test("subscribe with a known identifier and another topic returns 100108 and changes nothing", async () => {
      const { client } = running();
      const receiver = await receive();
      await client.open("continued/4");
      await client.open("continued/5");
      const subscriptionId = await client.subscribe({ topic: "continued/4", url: receiver.url });
      const before = await client.findSubscription(subscriptionId);
      for (const topic of ["continued/5", "continued/+"]) {
        const call = client.subscribe({ topic, url: "http://127.0.0.1:65535/", subscriptionId });
        expect(await codeOf(call)).toBe(100108);
      }
      expect(await client.findSubscription(subscriptionId)).toEqual(before);
      const [sent] = await publishMany(client, "continued/4", 1);
      expect(idsOf(await receiver.waitForCount(1))).toEqual([sent?.eventId]);
    });

    test("subscribe with the identifier of a removed subscription creates a new subscription with it", async () => {
      const { client } = running();
      const receiver = await receive();
      await client.open("continued/6");
      const subscriptionId = await client.subscribe({ topic: "continued/6", url: receiver.url });
      await publishMany(client, "continued/6", 1);
      await receiver.waitForCount(1);
      await client.unSubscribe(subscriptionId);
      await publishMany(client, "continued/6", 2);
      await client.subscribe({ topic: "continued/6", url: receiver.url, subscriptionId });
      const [sent] = await publishMany(client, "continued/6", 1);
      expect(idsOf(await receiver.waitForCount(2))[1]).toBe(sent?.eventId);
      // The broker updates its counts after the receiver's answer has arrived.
      await untilHolds(async () => {
        expect(await client.findSubscription(subscriptionId)).toMatchObject({ notifyingEventCount: "0" });
      });
    });
  });

  describe(`callbacks on the ${world.name}`, () => {
    test("a RESTful callback is a POST of exactly {subscriptionId, event}", async () => {
      const { client } = running();
      const receiver = await receive();
      await client.open("callback/1");
      const subscriptionId = await client.subscribe({ topic: "callback/1", url: receiver.url });
      const sent = await client.publish("callback/1", "ü", { "svc-format": "json" });
      await receiver.waitForCount(1);
      const [attempt] = receiver.attempts;
      expect(attempt).toMatchObject({ method: "POST", path: new URL(receiver.url).pathname, kind: "RESTful" });
      expect(attempt?.headers["content-type"]).toMatch(/^application\/json/);
      expect(JSON.parse(attempt?.body.toString() ?? "")).toEqual({
        subscriptionId,
        event: await client.getEvent(sent.eventId),
      });
      expect(attempt?.headers["webhook-id"]).toBe(sent.eventId);
      expect(attempt?.headers["webhook-timestamp"]).toMatch(/^\d{10}$/);
      expect(attempt?.headers["webhook-signature"]).toBeUndefined();
    });

    test("a JsonRPC callback is a JSON-RPC 2.0 request with the method onEvent", async () => {
      const { client } = running();
      const receiver = await receive();
      await client.open("callback/2");
      const subscriptionId = await client.subscribeByRpc({ topic: "callback/2", url: receiver.url });
      const sent = await client.publish("callback/2", "x");
      await receiver.waitForCount(1);
      const event = await client.getEvent(sent.eventId);
      const body: unknown = JSON.parse(receiver.attempts[0]?.body.toString() ?? "");
      const id: unknown = expect.any(String);
      expect(body).toEqual({ jsonrpc: "2.0", id, method: "onEvent", params: { subscriptionId, event } });
      expect(await client.findSubscription(subscriptionId)).toMatchObject({ interfaceType: "JsonRPC" });
    });

    test("a JsonRPC callback is retried after a JSON-RPC error, and after a body that is not a JSON-RPC response", async () => {
      const { client } = running();
      const bodies = ['{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}', "ok", ""];
      const receiver = await receive((attempt, response) => {
        const body = bodies.shift();
        if (body === undefined) accept(attempt, response);
        else response.end(body);
      });
      await client.open("callback/3");
      await client.subscribeByRpc({ topic: "callback/3", url: receiver.url });
      const sent = await publishMany(client, "callback/3", 2);
      await receiver.waitFor("all attempts", () => receiver.attempts.length >= 5);
      const [first = "", second = ""] = idsOf(sent);
      expect(receiver.attempts.map(({ event }) => event.eventId)).toEqual([first, first, first, first, second]);
    });

    test.each([24, 64])("a secret of %i bytes signs callbacks as Standard Webhooks 1.0 specifies", async (bytes) => {
      const key = Buffer.alloc(bytes, "secret");
      const secret = `whsec_${key.toString("base64")}`;
      const { client } = running();
      const receiver = await receive();
      const topic = `signed/${bytes}`;
      await client.open(topic);
      await client.subscribe({ topic, url: receiver.url, secret });
      await publishMany(client, topic, 2);
      await receiver.waitForCount(2);
      for (const { headers, body } of receiver.attempts) {
        const [id, time] = [String(headers["webhook-id"]), String(headers["webhook-timestamp"])];
        const signed = Buffer.concat([Buffer.from(`${id}.${time}.`), body]);
        const expected = createHmac("sha256", key).update(signed).digest("base64");
        expect(headers["webhook-signature"]).toBe(`v1,${expected}`);
      }
    });

    test("a plain-text secret is refused with a message that says how to make a valid one", async () => {
      const { client } = running();
      await client.open("unsigned");
      const params = { topic: "unsigned", url: "http://127.0.0.1:65535/", secret: "password" };
      await expect(client.subscribe(params)).rejects.toThrow("openssl rand -base64 32");
      await expect(client.subscribeByRpc(params)).rejects.toThrow("openssl rand -base64 32");
    });

    test("the listing and the log never contain a secret", async () => {
      const { client, brokers } = running();
      const secret = `whsec_${Buffer.from("a very secret secret indeed").toString("base64")}`;
      await client.open("hushed");
      await client.subscribe({ topic: "hushed", url: "http://127.0.0.1:65535/", secret });
      await publishMany(client, "hushed", 1);
      expect(JSON.stringify(await client.listSubscriptions())).not.toContain(secret);
      for (const broker of brokers) expect(broker.stderr() + broker.stdout()).not.toContain(secret);
    });

    test("after a 503 with Retry-After of 2 seconds, the broker waits that long and repeats the same eventId", async () => {
      const { client } = running();
      const times: number[] = [];
      const lastWait = (): number => (times.at(-1) ?? 0) - (times.at(-2) ?? 0);
      const receiver = await receive((attempt, response) => {
        times.push(performance.now());
        if (times.length === 1) answerStatus(503, { "retry-after": "2" })(attempt, response);
        else accept(attempt, response);
      });
      await client.open("retried");
      await client.subscribe({ topic: "retried", url: receiver.url });
      const [sent] = await publishMany(client, "retried", 1);
      await receiver.waitForCount(1);
      expect(new Set(receiver.attempts.map(({ event }) => event.eventId))).toEqual(new Set([sent?.eventId]));
      // In a cluster, a node that takes the subscription over waits for Retry-After too.
      expect(times.length).toBe(2);
      expect(lastWait()).toBeGreaterThan(1900);
    });
  });
}
