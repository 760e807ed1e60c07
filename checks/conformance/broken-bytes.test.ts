import { beforeAll, describe, expect, it } from "vitest";
import { createRandom, seedsOf } from "../harness/random.ts";
import { exchangeRaw, parseAnswer, toRequest } from "../harness/raw-http.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";
import { expectUnchanged } from "./unchanged.ts";

const running = useWorld(embeddedWorld);
const mutationsPerSeed = 300;

beforeAll(async () => {
  await running().client.open("bytes");
});

const rpcBody = JSON.stringify({
  id: "1",
  jsonrpc: "2.0",
  method: "publish",
  params: { topic: "bytes", content: "eA==" },
});
const requests = [
  [
    "REST GET",
    Buffer.from("GET /rest/publish?topic=bytes&content=x HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
  ],
  [
    "REST form",
    toRequest("/rest/publish", { type: "application/x-www-form-urlencoded", body: "topic=bytes&content=x" }),
  ],
  ["REST JSON", toRequest("/rest/publish", { type: "application/json", body: '{"topic":"bytes","content":"x"}' })],
  ["JSON-RPC", toRequest("/jsonrpc", { type: "application/json", body: rpcBody })],
] as const;

async function sequenceNumber(): Promise<number> {
  return (await running().client.state("bytes")).sequenceNumber;
}

function toExist(topic: string, end: string): string {
  return `GET /rest/exist?topic=${topic} HTTP/1.1\r\nhost: localhost\r\n${end}\r\n`;
}

describe("a request in pieces", () => {
  it.each(requests)("%s: a request that arrives byte by byte is executed once", async (_name, request) => {
    const before = await sequenceNumber();
    const pieces = [...request].map((byte) => Uint8Array.of(byte));
    const answer = parseAnswer(await exchangeRaw(running().broker.url, { pieces }));
    expect(answer).toMatchObject({ status: 200, body: expect.stringContaining('"SUCCESS"') });
    expect(await sequenceNumber()).toBe(before + 1);
  });

  it("the broker reads a whole chunked body, whatever the size of its chunks", async () => {
    const body = "topic=bytes&content=chunked";
    const head =
      "POST /rest/publish HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/x-www-form-urlencoded\r\ntransfer-encoding: chunked\r\n\r\n";
    for (const size of [1, 2, 7, body.length]) {
      const before = await sequenceNumber();
      const chunks = body.match(new RegExp(`.{1,${size}}`, "g")) ?? [];
      const pieces = [head, ...chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`), "0\r\n\r\n"];
      const answer = parseAnswer(await exchangeRaw(running().broker.url, { pieces }));
      expect(answer?.body).toContain('"SUCCESS"');
      expect(await sequenceNumber()).toBe(before + 1);
    }
  });

  it("the broker answers pipelined requests in order", async () => {
    const { broker } = running();
    const pieces = [toExist("bytes", "") + toExist("none", "") + toExist("bytes", "connection: close\r\n")];
    const text = await exchangeRaw(broker.url, { pieces });
    expect(text.match(/\r\n\r\n(true|false)/g)).toEqual(["\r\n\r\ntrue", "\r\n\r\nfalse", "\r\n\r\ntrue"]);
  });
});

describe("a request that is cut off at any byte", () => {
  it.each(requests)(
    "%s: a request that is cut off at any byte changes nothing, and the broker stays ready",
    async (_name, request) => {
      const { broker, client } = running();
      await expectUnchanged(client, async () => {
        // Ten at a time, over separate connections.
        for (let start = 1; start < request.length; start += 10) {
          const cuts = Array.from({ length: Math.min(10, request.length - start) }, (_, index) => start + index);
          await Promise.all(
            cuts.map((end) => exchangeRaw(broker.url, { pieces: [request.subarray(0, end)], isCut: true })),
          );
        }
      });
      expect((await client.http.send({ method: "GET", path: "/health/ready" })).status).toBe(200);
    },
  );
});

describe("a request with flipped bits", () => {
  it.each(seedsOf("CHECKS_MUTATION_SEEDS", [1, 2]))(
    "a request with flipped bits is answered or refused, crashes nothing, and publishes at most one event (seed %d)",
    async (seed) => {
      const random = createRandom(seed);
      const { broker, client } = running();
      const total = (await client.list()).total;
      let published = 0;
      const before = await sequenceNumber();
      for (let index = 0; index < mutationsPerSeed; index += 1) {
        const [, request] = random.pick(requests);
        const bytes = Buffer.from(request);
        for (let flips = 1 + random.below(3); flips > 0; flips -= 1) {
          const place = random.below(bytes.length);
          bytes[place] = (bytes[place] ?? 0) ^ (1 << random.below(8));
        }
        const answer = parseAnswer(await exchangeRaw(broker.url, { pieces: [bytes], isEnded: true }));
        // Topics of other names do not exist, so only this topic can have received an event.
        if (answer?.body.includes('"SUCCESS"') === true) published += 1;
        if (answer !== undefined)
          expect([200, 204, 400, 403, 404, 405, 408, 413, 417, 431, 501, 505]).toContain(answer.status);
      }
      // A request may still run after its connection ended without an answer. A later call of the group runs after it.
      await client.publish("bytes", "after all of them");
      // A JSON-RPC request that lost its id is a notification: it runs without an answer.
      const after = (await sequenceNumber()) - 1;
      expect(after - before).toBeGreaterThanOrEqual(published);
      expect(after - before).toBeLessThanOrEqual(mutationsPerSeed);
      expect((await client.list()).total).toBe(total);
      expect((await client.http.send({ method: "GET", path: "/health/live" })).status).toBe(200);
      expect(Object.values(await client.listSubscriptions())).toEqual([{}]);
    },
  );
});

describe("a body of random bytes", () => {
  it.each(["/rest/publish", "/rest/open", "/rest/subscribe", "/jsonrpc"])(
    "a body of random bytes to %s is refused and changes nothing",
    async (path) => {
      const random = createRandom(path.length);
      const { broker, client } = running();
      await expectUnchanged(client, async () => {
        for (let index = 0; index < 30; index += 1) {
          const body = Uint8Array.from({ length: random.below(400) }, () => random.below(256));
          const type = random.pick(["application/json", "application/x-www-form-urlencoded"]);
          const answer = parseAnswer(await exchangeRaw(broker.url, { pieces: [toRequest(path, { type, body })] }));
          expect(answer?.status).toBe(200);
          expect(answer?.body).toMatch(/"code":-?\d+/);
        }
      });
    },
  );
});
