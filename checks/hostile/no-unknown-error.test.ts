import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { codeOf } from "../harness/client.ts";
import { clusterWorld } from "../harness/cluster-world.ts";
import type { HttpAnswer, HttpRequest } from "../harness/http-client.ts";
import { createRandom, seedsOf } from "../harness/random.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld, type World } from "../harness/world.ts";
import { oddRequest } from "./support/odd-requests.ts";
import { type KnownValues, OddValues } from "./support/odd-values.ts";

const requestsPerSeed = 750;
const requestsAtOnce = 16;
const topics = ["fuzz/a", "fuzz/b", "fuzz"];
const url = "http://127.0.0.1:65535/";
const env = { STELE_LOG_FORMAT: "json", STELE_LOG_LEVEL: "info" };
/** The catalogue's code for unexpected errors, and JSON-RPC's. */
const unforeseen = /"code":(200000|-32603)\b/;
/** The broker logs an error with a stack if it considers the error its own fault. */
const defect = /"level":"error"|"stack":/;

function describeOdd(world: World, seeds: readonly number[]): void {
  const running = useWorld(world, { env });
  let known: KnownValues;

  beforeAll(async () => {
    const { client } = running();
    for (const topic of topics) await client.open(topic);
    const published = await Promise.all(topics.map((topic) => client.publish(topic, "x", { "svc-a": "b" })));
    const subscriptionIds = [await client.subscribe({ topic: "fuzz/a", url })];
    known = { topics, eventIds: published.map(({ eventId }) => eventId), subscriptionIds };
  });

  it.each([
    ["the largest safe integers", "9007199254740991-9007199254740991"],
    ["a block beyond the highest position", "1-8589934592"],
    ["the last block that a position can contain", "1-8589934591"],
  ])("an eventId with %s is refused as beyond the chain", async (_name, rest) => {
    const { client } = running();
    const eventId = `${known.eventIds[0]?.slice(0, 8)}-${rest}`;
    expect(await codeOf(client.getEvent(eventId))).toBe(100304);
    expect(await codeOf(client.subscribe({ topic: "fuzz/a", url, offset: eventId }))).toBe(100304);
  });

  it.each([
    ["url", `${url}\0`, 100501],
    ["secret", "a\0b", 200001],
  ])("a NUL in %s, which PostgreSQL cannot store, is refused", async (name, text, code) => {
    expect(await codeOf(running().client.subscribe({ topic: "fuzz/a", url, [name]: text }))).toBe(code);
  });

  it.each(seeds)(
    `${requestsPerSeed} requests on all interfaces get no unknown error and leave no stack in the log, seed %d`,
    async (seed) => {
      const { client, brokers } = running();
      const values = new OddValues(createRandom(seed), known);
      const queue = Array.from({ length: requestsPerSeed }, () => oddRequest(values)).values();
      const found: string[] = [];
      const send = async (): Promise<void> => {
        for (const request of queue) {
          const answer = await client.http.send(request);
          if (isUnforeseen(request, answer)) found.push(describeCase(request, answer));
        }
      };
      await Promise.all(Array.from({ length: requestsAtOnce }, send));
      expect(found.slice(0, 20)).toEqual([]);
      const lines = brokers.flatMap((broker) => broker.stdout().split("\n"));
      expect(lines.filter((line) => defect.test(line)).slice(0, 20)).toEqual([]);
      // A broker that had died would not answer.
      expect(await client.isReady()).toBe(true);
    },
  );
}

/** Whether an answer shows an unexpected error. Status 503 of the admin API is expected: it stands for the catalogue's errors of the kind `unavailable`. */
function isUnforeseen({ path }: HttpRequest, { status, text }: HttpAnswer): boolean {
  const isUnavailable = status === 503 && path.startsWith("/admin/v1/");
  return (status >= 500 && !isUnavailable) || unforeseen.test(text);
}

function describeCase({ method, path, body }: HttpRequest, { status, text }: HttpAnswer): string {
  return `${method} ${path.slice(0, 200)} ${String(body ?? "").slice(0, 300)} → ${status} ${text.slice(0, 200)}`;
}

describe("any request, with SQLite", () => {
  describeOdd(embeddedWorld, seedsOf("CHECKS_FUZZ_SEEDS", [9, Date.now() % 1_000_000_000]));
});

const shared = clusterWorld();
describe.runIf(shared.isAvailable)("any request, with PostgreSQL", () => {
  afterAll(async () => shared.close?.());
  describeOdd(shared, seedsOf("CHECKS_FUZZ_SEEDS", [9]));
});
