import { once } from "node:events";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Stele, SteleError } from "@stele/client";
import { verifyProof } from "@stele/client/proof";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findFreePort } from "../harness/free-port.ts";
import { createRandom, seedsOf } from "../harness/random.ts";
import { startReceiver } from "../harness/receiver.ts";
import { TcpProxy } from "../harness/tcp-proxy.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld, type RunningWorld } from "../harness/world.ts";

/** A fetch that sends each request, but drops the first `lost` answers, as a network may. */
function losingAnswers(lost: number): typeof fetch {
  let answers = 0;
  return async (input, init) => {
    const response = await fetch(input, init);
    answers += 1;
    if (answers > lost) return response;
    await response.arrayBuffer();
    throw new TypeError("the connection is lost");
  };
}

function answerPage(): Promise<Response> {
  return Promise.resolve(new Response("<html>"));
}

/** Runs the garbage collector: it would drop an abort signal that nothing references. */
function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
}

/** The broker keeps its port over restarts. */
const port = await findFreePort();
const running = useWorld(embeddedWorld, { env: { STELE_PORT: String(port) } });
const client = (options: { readonly fetch?: typeof fetch } = {}): Stele =>
  new Stele({ url: running().broker.url, ...options });

describe("calls", () => {
  it("the client opens a topic, publishes, reads and closes; a publish to the closed topic rejects with 100112", async () => {
    const stele = client();
    expect(await stele.exist("a")).toBe(false);
    expect(await stele.open("a")).toBe(true);
    const { eventId } = await stele.publish("a", { order: 1 }, { extensions: { "svc-x": "y" } });
    const event = await stele.getEvent(eventId);
    expect(event).toMatchObject({ topic: "a", eventId, extensions: { "svc-format": "json", "svc-x": "y" } });
    expect(event.json()).toEqual({ order: 1 });
    expect(await stele.state("a")).toMatchObject({ topicName: "a", sequenceNumber: 1 });
    const topics = [];
    for await (const topic of stele.topics()) topics.push(topic.topicName);
    expect(topics).toContain("a");
    expect(await stele.close("a")).toBe(true);
    const refused = stele.publish("a", "x");
    await expect(refused).rejects.toThrow(SteleError);
    await expect(refused).rejects.toMatchObject({ code: 100112, retry: false });
  });

  it("the client publishes and reads any bytes and any text", async () => {
    const stele = client();
    await stele.open("bytes");
    const bytes = Uint8Array.from({ length: 20_000 }, (_, index) => index % 256);
    const { eventId } = await stele.publish("bytes", bytes);
    expect((await stele.getEvent(eventId)).bytes()).toEqual(bytes);
    const text = await stele.publish("bytes", "Größe 😀");
    expect((await stele.getEvent(text.eventId)).text()).toBe("Größe 😀");
  });

  it("publishMany publishes in order, and reports each outcome separately", async () => {
    const stele = client();
    await stele.open("many");
    const contents = Array.from({ length: 1_500 }, (_, index) => String(index));
    const publications = contents.map((content) => ({ topic: "many", content }));
    const outcomes = await stele.publishMany([...publications, { topic: "nowhere", content: "x" }]);
    expect(outcomes.at(-1)).toMatchObject({ status: "failed", topic: "nowhere", error: { code: 100101 } });
    expect(outcomes.filter(({ status }) => status === "published")).toHaveLength(1_500);
    const read: string[] = [];
    for await (const event of stele.subscribe("many", { after: "OFFSET_FIRST" })) {
      read.push(event.text());
      if (read.length === contents.length) break;
    }
    expect(read).toEqual(contents);
  });

  it("publishMany publishes in order to a broker that accepts only short requests", async () => {
    const env = {
      STELE_CONTENT_BYTES_MAX: "500",
      STELE_EXTENSIONS_BYTES_MAX: "100",
      STELE_REQUEST_BODY_BYTES_MAX: "2000",
    };
    await using world = await embeddedWorld.start({ env });
    const stele = new Stele({ url: world.broker.url });
    await stele.open("short");
    const contents = Array.from({ length: 10 }, (_, index) => `${index}${"x".repeat(400)}`);
    const outcomes = await stele.publishMany(contents.map((content) => ({ topic: "short", content })));
    expect(outcomes.map((outcome) => (outcome.status === "failed" ? outcome.error.message : "published"))).toEqual(
      contents.map(() => "published"),
    );
    const tail = stele.subscribe("short", { after: "OFFSET_FIRST" })[Symbol.asyncIterator]();
    for (const content of contents) expect((await tail.next()).value?.text()).toBe(content);
    await tail.return?.();
  });

  it("the client publishes an event once with a key, even if answers are lost", async () => {
    const stele = client({ fetch: losingAnswers(2) });
    await client().open("once");
    const { eventId } = await stele.publish("once", "x", { once: true });
    expect(await client().state("once")).toMatchObject({ sequenceNumber: 1 });
    expect(await client().getEvent(eventId)).toMatchObject({ eventId });
    const many = client({ fetch: losingAnswers(1) });
    const outcomes = await many.publishMany(["1", "2"].map((content) => ({ topic: "once", content, once: true })));
    expect(outcomes.map(({ status }) => status)).toEqual(["published", "published"]);
    expect(await client().state("once")).toMatchObject({ sequenceNumber: 3 });
  });

  it("if the answer to a publish without a key is lost, the client does not repeat the publish", async () => {
    await client().open("lost");
    const published = client({ fetch: losingAnswers(1) }).publish("lost", "x");
    await expect(published).rejects.toMatchObject({ code: undefined, retry: true, wasRefused: false });
    expect(await client().state("lost")).toMatchObject({ sequenceNumber: 1 });
  });

  it("a call and a tail reject with the reason of an aborted signal", async () => {
    const reason = new Error("enough");
    await expect(client().list({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const ending = new AbortController();
    await client().open("ended");
    const tail = client().subscribe("ended", { signal: ending.signal });
    await tail.opened();
    await client().publish("ended", "x");
    const events = tail[Symbol.asyncIterator]();
    await events.next();
    const next = events.next();
    collectGarbage();
    ending.abort(reason);
    await expect(next).rejects.toBe(reason);
  });

  it("a call and a tail reject with retry: true if nothing listens and all retries fail", async () => {
    const stele = new Stele({ url: `http://127.0.0.1:${await findFreePort()}`, retries: 1 });
    const failure = { code: undefined, retry: true, wasRefused: true };
    await expect(stele.publish("a", "x")).rejects.toMatchObject(failure);
    await expect(stele.subscribe("a").opened()).rejects.toMatchObject(failure);
  });

  it("a call rejects with retry: false if the answer is not from a broker", async () => {
    const call = client({ fetch: answerPage }).exist("a");
    await expect(call).rejects.toMatchObject({ code: undefined, retry: false });
  });

  it("the client verifies a proof by a block hash, and refutes a changed proof", async () => {
    const stele = client();
    await stele.open("proven");
    const { eventId } = await stele.publish("proven", "x");
    const proof = await stele.getProof(eventId);
    const blockNumber = Number(eventId.split("-")[2]);
    const params = [`0x${blockNumber.toString(16)}`, false];
    const answer = await running().client.http.send({
      method: "POST",
      path: "/chain",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_getBlockByNumber", params }),
    });
    const { hash } = (answer.json() as { result: { hash: string } }).result; // As every Ethereum node answers.
    expect(verifyProof(proof, hash)).toMatchObject({ status: "verified", event: { eventId, topic: "proven" } });
    expect(verifyProof({ ...proof, publisher: `0x${"1".repeat(40)}` }, hash)).toMatchObject({ status: "refuted" });
  });

  it("the client pauses, resumes and finds subscriptions through the admin API", async () => {
    const stele = client();
    await using receiver = await startReceiver();
    await stele.open("held");
    const id = await running().client.subscribe({ topic: "held", url: receiver.url });
    const results = [];
    for await (const result of stele.admin.order({ name: "pause" }, id)) results.push(result);
    expect(results).toEqual([{ id, events: 0, dryRun: false }]);
    await stele.publish("held", "x");
    expect(await stele.admin.subscription(id)).toMatchObject({ id, state: "paused", lag: 1 });
    for await (const result of stele.admin.order({ name: "resume" }, { topic: "held" })) results.push(result);
    expect(results.at(-1)).toMatchObject({ id, dryRun: false });
    await receiver.waitForCount(1);
    const ids = [];
    for await (const subscription of stele.admin.subscriptions({ topic: "held" })) ids.push(subscription.id);
    expect(ids).toEqual([id]);
    await expect(stele.admin.subscription("nothing")).rejects.toMatchObject({ code: 100505 });
  });

  it("the client reads one session, and the skipped entries of a group", async () => {
    const stele = client();
    await stele.open("watched");
    const tail = stele.subscribe("watched");
    await tail.opened();
    const sessions = [];
    for await (const session of stele.admin.sessions({ kind: "Tail" })) sessions.push(session);
    const own = sessions.find(({ filters }) => filters.some(({ topic }) => topic === "watched"));
    expect(await stele.admin.session(own?.id ?? "none")).toEqual(own);
    tail.close();
    const unknown = "00000000-0000-4000-8000-000000000000";
    await expect(stele.admin.session(unknown)).rejects.toMatchObject({ code: 100508 });
    expect(await stele.admin.skippedEntriesOf("1").next()).toMatchObject({ done: true });
    await expect(stele.admin.skippedEntriesOf("none").next()).rejects.toMatchObject({ code: 200211 });
  });
});

describe("a tail", () => {
  let world: RunningWorld;
  let proxy: TcpProxy;
  beforeAll(async () => {
    world = running();
    proxy = await TcpProxy.start(port);
  });
  afterAll(() => proxy[Symbol.asyncDispose]());

  it.each(seedsOf("CHECKS_TAIL_SEEDS", [1, 2, 3]))(
    "a tail misses and repeats nothing over connections that are cut at random, seed %i",
    async (seed) => {
      const random = createRandom(seed);
      const topic = `cut/${seed}`;
      const stele = new Stele({ url: world.broker.url });
      await stele.open(topic);
      const proxied = new Stele({ url: `http://127.0.0.1:${proxy.port}` });
      let cuts = 0;
      const tail = proxied.subscribe("cut/#", { reconnectMsMax: 20, onReconnect: () => (cuts += 1) });
      await tail.opened();
      const turns = Array.from({ length: 40 }, (_, turn) =>
        Array.from({ length: 10 }, (_, index) => `${turn}/${index}`),
      );
      const read: string[] = [];
      const events = tail[Symbol.asyncIterator]();
      for (const contents of turns) {
        // A cut here makes this turn's events arrive over a new connection.
        if (random.below(3) === 0 || contents === turns[0]) proxy.cut();
        const publishing = stele.publishMany(contents.map((content) => ({ topic, content })));
        const cutAt = random.below(20);
        for (let index = 0; index < contents.length; index += 1) {
          read.push((await events.next()).value?.text() ?? "");
          if (index === cutAt) proxy.cut();
        }
        await publishing;
      }
      await events.return?.();
      expect(read).toEqual(turns.flat());
      expect(cuts).toBeGreaterThan(0);
    },
  );

  it("a tail continues after the broker was stopped, and after it was killed", async () => {
    const stele = (): Stele => new Stele({ url: world.broker.url });
    await stele().open("restart");
    const tail = stele().subscribe("restart", { reconnectMsMax: 20 });
    await tail.opened();
    const events = tail[Symbol.asyncIterator]();
    const next = async (): Promise<string | undefined> => (await events.next()).value?.text();
    await stele().publish("restart", "1");
    expect(await next()).toBe("1");
    await world.stop();
    await world.resume();
    await stele().publish("restart", "2");
    expect(await next()).toBe("2");
    const afterKill = next();
    await world.broker.kill();
    await world.stop();
    await world.resume();
    await stele().publish("restart", "3");
    expect(await afterKill).toBe("3");
    await events.return?.();
  });

  it("a closed tail ends its loop without an error, even if it was reconnecting", async () => {
    const stele = new Stele({ url: `http://127.0.0.1:${proxy.port}` });
    await stele.open("closed");
    const tail = stele.subscribe("closed");
    await tail.opened();
    const waiting = tail[Symbol.asyncIterator]().next();
    tail.close();
    expect(await waiting).toEqual({ done: true, value: undefined });
    for await (const _event of tail) throw new Error("a closed tail gives no events");
    const loss = new AbortController();
    const lost = once(loss.signal, "abort");
    const cut = stele.subscribe("closed", { onReconnect: () => loss.abort() });
    await cut.opened();
    const next = cut[Symbol.asyncIterator]().next();
    proxy.refuse();
    await lost;
    cut.close();
    expect(await next).toEqual({ done: true, value: undefined });
    proxy.restore();
  });

  it("a tail gives CloudEvents with all digits of their numbers", async () => {
    const stele = new Stele({ url: world.broker.url });
    await stele.open("ce");
    const data = '{"n":12345678901234567890}';
    const { eventId } = await stele.publish("ce", data, { extensions: { "svc-format": "json", "svc-colour": "red" } });
    for await (const event of stele.subscribeCloudEvents("ce", { after: "OFFSET_FIRST" })) {
      expect(event.text).toContain(`"data":${data}`);
      expect(event.json()).toMatchObject({ specversion: "1.0", id: eventId, subject: "ce", colour: "red" });
      break;
    }
  });

  it("a tail starts from the place of an earlier tail", async () => {
    const stele = new Stele({ url: world.broker.url });
    await stele.open("place");
    await stele.publishMany(["1", "2", "3"].map((content) => ({ topic: "place", content })));
    const earlier = stele.subscribe("place", { after: "OFFSET_FIRST" });
    for await (const event of earlier) if (event.text() === "2") break;
    for await (const event of stele.subscribe("place", { after: earlier.place })) {
      expect(event.text()).toBe("3");
      break;
    }
  });
});
