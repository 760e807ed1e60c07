import { expect, it } from "vitest";
import { type BrokerProcess, startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { HttpClient } from "../harness/http-client.ts";
import { createRandom, seedsOf } from "../harness/random.ts";
import { type Attempt, accept, type Behaviour, startReceiver } from "../harness/receiver.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";

const seeds = seedsOf("CHECKS_KILL_LETTERS_SEEDS", [20_261_123]);
const rounds = Number(process.env["CHECKS_KILL_ROUNDS"] ?? "2");
const topics = ["letter/0", "letter/1", "letter/2"];
const quick = { STELE_CALLBACK_BACKOFF_MIN_MS: "10", STELE_CALLBACK_BACKOFF_MAX_MS: "20", STELE_LOG_LEVEL: "error" };
const timeoutMs = 60_000 * (rounds + 4);

interface Letter {
  readonly eventId: string;
  readonly attempts: number;
}

const sequenceOf = (eventId: string): number => Number(eventId.split("-")[1]);

/** Refuses every fifth event of each topic while `isBroken`. */
function createBehaviour(state: { isBroken: boolean }): Behaviour {
  return (attempt, response) => {
    const isRefused = state.isBroken && sequenceOf(attempt.event.eventId) % 5 === 0;
    if (isRefused) response.writeHead(500).end();
    else accept(attempt, response);
  };
}

async function publishUntil(client: Client, isOver: () => boolean): Promise<void> {
  const publish = async (topic: string): Promise<void> => {
    for (let count = 0; !isOver(); count += 1) {
      try {
        await client.publish(topic, String(count));
      } catch {
        return;
      }
    }
  };
  await Promise.all(topics.map(publish));
}

/** Identifiers of all events that the topics have. */
async function listEvents(http: HttpClient): Promise<readonly string[]> {
  const ids: string[] = [];
  for (const topic of topics) {
    for (let next = ""; ; ) {
      const path = `/admin/v1/topics/${encodeURIComponent(topic)}/events?limit=500${next}`;
      const answer = await http.send({ method: "GET", path });
      const page = answer.json() as { items: { eventId: string }[]; next?: string }; // Documented in OpenAPI.
      ids.push(...page.items.map(({ eventId }) => eventId));
      if (page.next === undefined) break;
      next = `&cursor=${page.next}`;
    }
  }
  return ids;
}

const acceptedIds = (attempts: readonly Attempt[]): ReadonlySet<string> =>
  new Set(attempts.filter(({ isAccepted }) => isAccepted).map(({ event }) => event.eventId));

it.each(seeds)(
  "kill -9 while events become dead letters: each event is either accepted or a dead letter, and every dead letter can be redelivered, seed %i",
  async (seed) => {
    using folder = createTempFolder();
    const random = createRandom(seed);
    const state = { isBroken: true };
    await using receiver = await startReceiver({ behaviour: createBehaviour(state) });
    let id = "";
    let broker: BrokerProcess | undefined;
    for (let round = 0; round < rounds; round += 1) {
      broker = await startBroker({ dataDir: folder.path, env: quick });
      await using client = new Client(broker.url);
      if (round === 0) {
        for (const topic of topics) await client.open(topic);
        const rule = "concurrency=2&onFailure=skip&attemptsMax=2";
        const url = encodeURIComponent(receiver.url);
        const answer = await fetch(`${broker.url}/rest/subscribe?topic=letter/%2B&url=${url}&${rule}`);
        id = (await answer.json()) as string; // REST returns the identifier.
      }
      const publication = { isOver: false };
      const publishing = publishUntil(client, () => publication.isOver);
      const due = receiver.attempts.length + 60 + random.below(100);
      await until("events are attempted", () => receiver.attempts.length >= due, { timeoutMs: 60_000 });
      await broker.kill();
      publication.isOver = true;
      await publishing;
    }
    broker = await startBroker({ dataDir: folder.path, env: quick });
    await using http = new HttpClient(broker.url);
    const ask = async (path: string): Promise<unknown> =>
      (await http.send({ method: "GET", path: `/admin/v1/subscriptions/${id}${path}` })).json();
    const isIdle = async (): Promise<boolean> => ((await ask("")) as { lag: number }).lag === 0;
    await until("no event waits", isIdle, { timeoutMs: 60_000 });
    const all = await listEvents(http);
    const { items: letters } = (await ask("/dead-letters?limit=500")) as { items: readonly Letter[] };
    const refused = all.filter((eventId) => sequenceOf(eventId) % 5 === 0);
    expect(letters.map(({ eventId }) => eventId).toSorted()).toEqual(refused.toSorted());
    expect(letters.every(({ attempts }) => attempts >= 2)).toBe(true);
    const accepted = acceptedIds(receiver.attempts);
    expect(all.filter((eventId) => !accepted.has(eventId)).toSorted()).toEqual(refused.toSorted());
    state.isBroken = false;
    const path = `/admin/v1/subscriptions/${id}/redeliver`;
    const headers = { "content-type": "application/json" };
    const answer = await http.send({ method: "POST", path, headers, body: '{"all":true}' });
    expect(answer.json()).toMatchObject({ events: refused.length, letters: { left: 0 } });
    const delivered = acceptedIds(receiver.attempts);
    expect(all.filter((eventId) => !delivered.has(eventId))).toEqual([]);
    expect((await broker.stop()).code).toBe(0);
  },
  timeoutMs,
);
