import { afterAll, describe, expect, it } from "vitest";
import { codeOf } from "../harness/client.ts";
import { findFreePort } from "../harness/free-port.ts";
import { until } from "../harness/until.ts";
import { useReceivers, useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";
import { startDnsServer } from "../../tools/dns-server.mjs";
import { peakMebibytes } from "./support/process-memory.ts";
import {
  answer,
  type Answer,
  neverAnswer,
  startWebServer,
  type WebRequest,
  type WebServer,
} from "./support/web-server.ts";

describe("40 host names that no name server answers for", async () => {
  const slowNames = Array.from({ length: 40 }, (_, index) => `slow-${index}.example`);
  const dns = await startDnsServer(
    new Map([...slowNames.map((name) => [name, "silent"] as const), ["healthy.example", "127.0.0.1"]]),
  );
  const env = { STELE_CALLBACK_DNS_SERVERS: dns.address, STELE_LOG_LEVEL: "error" };
  const running = useWorld(embeddedWorld, { env });
  const receive = useReceivers();
  afterAll(() => dns[Symbol.asyncDispose]());

  it("40 host names without an answer from their name server do not delay a callback to another name", async () => {
    const { client } = running();
    const healthy = await receive();
    const areAllAsked = (): boolean => slowNames.every((name) => dns.questions.includes(name));
    await client.open("names");
    const slow = slowNames.map((name) => client.subscribe({ topic: "names", url: `http://${name}/` }));
    await until("every slow name is being looked up", areAllAsked);
    const startedAt = performance.now();
    await client.subscribe({ topic: "names", url: healthy.url.replace("127.0.0.1", "healthy.example") });
    await client.publish("names", "for all");
    await healthy.waitForCount(1);
    // A look-up without an answer takes 3 s. If only four ran at a time, 40 names would take 30 s.
    expect(performance.now() - startedAt).toBeLessThan(15_000);
    await Promise.all(slow);
  });
});

describe("if receivers must consent", () => {
  const env = {
    STELE_CALLBACK_CONSENT: "require",
    STELE_CALLBACK_BACKOFF_MIN_MS: "50",
    STELE_CALLBACK_BACKOFF_MAX_MS: "200",
    STELE_LOG_LEVEL: "error",
  };
  const running = useWorld(embeddedWorld, { env });

  it("a server that does not know callbacks receives no byte of any event", async () => {
    const { client } = running();
    await using victim = await startWebServer(answer(404));
    await client.open("reflected");
    const calls = Array.from({ length: 100 }, () => codeOf(client.subscribe({ topic: "reflected", url: victim.url })));
    expect(new Set(await Promise.all(calls))).toEqual(new Set([100_506]));
    await client.publish("reflected", "x".repeat(60_000));
    expect(eventsOf(victim).length).toBe(0);
    expect(victim.bodyBytes).toBeLessThan(1000);
  });

  it("a receiver that starts only after the subscribe gets no event before it consents, and then gets the first event", async () => {
    const { client } = running();
    const port = await findFreePort();
    await client.open("later");
    await client.subscribe({ topic: "later", url: `http://127.0.0.1:${port}/` });
    await client.publish("later", "x");
    await using receiver = await startWebServer(answer(500), port);
    await until("the broker asks for consent", () => receiver.requests.length > 0);
    expect(eventsOf(receiver).length).toBe(0);
    receiver.setAnswer(answer(200, { "webhook-allowed-origin": "*" }));
    await until("the event arrives", () => eventsOf(receiver).length === 1);
  });
});

describe("receivers with malicious answers", () => {
  const env = { STELE_LOG_LEVEL: "error" };
  const running = useWorld(embeddedWorld, { env });
  const receive = useReceivers();

  it("the broker and the delivery continue after an answer with two Retry-After headers", async () => {
    const { client } = running();
    const receiver = await receive();
    receiver.setBehaviour((_attempt, response) => {
      response.writeHead(receiver.attempts.length === 1 ? 503 : 200, ["retry-after", "0", "retry-after", "1"]).end();
    });
    await client.open("twice");
    await client.subscribe({ topic: "twice", url: receiver.url });
    await client.publish("twice", "x");
    await receiver.waitForCount(1);
    expect(await client.isReady()).toBe(true);
  });

  it.each([
    { topic: "tiny", count: 200, what: "60,000 chunks of one byte", pieces: "1\r\nx\r\n".repeat(60_000) },
    {
      topic: "padded",
      count: 16,
      what: "1000 chunks of one byte with 64 KB of extension",
      pieces: `1;${"x".repeat(64_000)}\r\nx\r\n`.repeat(1000),
    },
  ])("$count answers in $what leave the broker's peak memory below 512 MiB", async ({ topic, count, pieces }) => {
    const { client, broker } = running();
    const text = Buffer.from(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${pieces}`);
    let closedCount = 0;
    const answerAtLength: Answer = (_request, { socket }) => {
      socket?.once("close", () => (closedCount += 1));
      socket?.write(text);
    };
    const hostile = await Promise.all(Array.from({ length: count }, () => startWebServer(answerAtLength)));
    await client.open(topic);
    await Promise.all(hostile.map(({ url }) => client.subscribe({ topic, url })));
    await client.publish(topic, "x");
    await until("every receiver has lost its connection", () => closedCount >= count);
    expect(peakMebibytes(broker.pid)).toBeLessThan(512);
    await Promise.all(hostile.map((server) => server[Symbol.asyncDispose]()));
  });
});

describe("with limits for receivers", () => {
  const bytesPerSecondMax = 200_000;
  const subscriptionsMax = 40;
  const connectionsMax = 8;
  const env = {
    STELE_CALLBACK_SUBSCRIPTIONS_PER_RECEIVER_MAX: String(subscriptionsMax),
    STELE_CALLBACK_BYTES_PER_SECOND_MAX: String(bytesPerSecondMax),
    STELE_CALLBACK_CONNECTIONS_TOTAL_MAX: String(connectionsMax),
    STELE_CALLBACK_TIMEOUT_MS: "1000",
    STELE_CALLBACK_BACKOFF_MIN_MS: "50",
    STELE_CALLBACK_BACKOFF_MAX_MS: "200",
    STELE_LOG_LEVEL: "error",
  };
  const running = useWorld(embeddedWorld, { env });
  const receive = useReceivers();

  it("1 MiB of notifications leaves at the configured rate, and does not delay another receiver", async () => {
    const { client } = running();
    await using victim = await startWebServer(answer(204));
    const other = await receive();
    await client.open("amplified");
    const calls = Array.from({ length: 3 * subscriptionsMax }, (_, index) =>
      codeOf(client.subscribe({ topic: "amplified", url: `${victim.url}${index}` })),
    );
    const codes = await Promise.all(calls);
    expect(codes.filter((code) => code === undefined)).toHaveLength(subscriptionsMax);
    expect(codes.filter((code) => code === 200_301)).toHaveLength(2 * subscriptionsMax);
    await client.subscribe({ topic: "amplified", url: other.url });

    const startedAt = performance.now();
    await client.publish("amplified", "x".repeat(20_000));
    await other.waitForCount(1);
    expect(eventsOf(victim).length).toBeLessThan(subscriptionsMax / 2);
    await until("half of the notifications have arrived", () => eventsOf(victim).length >= subscriptionsMax / 2);
    const seconds = (performance.now() - startedAt) / 1000;
    // The limit allows the bytes of one second in a burst. The bytes of another half second are tolerance for the notification in progress.
    expect(victim.bodyBytes).toBeLessThan(bytesPerSecondMax * (seconds + 1.5));
    expect(seconds).toBeGreaterThan(1);
  });

  it("160 hanging receivers use at most 16 connections, and do not block a receiver that answers", async () => {
    const { client } = running();
    const hanging = await Promise.all(Array.from({ length: 160 }, () => startWebServer(neverAnswer)));
    const healthy = await receive();
    await client.open("hanging");
    await client.subscribe({ topic: "hanging", url: healthy.url });
    await Promise.all(hanging.map(({ url }) => client.subscribe({ topic: "hanging", url })));
    let open = 0;
    for (let count = 1; count <= 20; count += 1) {
      await client.publish("hanging", `event ${count}`);
      await healthy.waitForCount(count);
      open = Math.max(
        open,
        hanging.reduce((sum, { openConnections }) => sum + openConnections, 0),
      );
    }
    // Connections that the broker is closing still count here, so the limit is doubled.
    expect(open).toBeLessThanOrEqual(2 * connectionsMax);
    await Promise.all(hanging.map((server) => server[Symbol.asyncDispose]()));
  });
});

function eventsOf({ requests }: WebServer): readonly WebRequest[] {
  return requests.filter(({ body }) => /"eventId":"[^"]/.test(body));
}
