import type { Client } from "../../harness/client.ts";
import { until } from "../../harness/until.ts";
import { replayAll } from "./replay.ts";

/** A broker's answers about its topics and events, as text. */
export interface Answers {
  readonly list: string;
  readonly states: readonly string[];
  readonly events: readonly string[];
  readonly replay: readonly string[];
}

/** Publishes events of many kinds, one by one and many at once. Leaves closed, reopened and empty topics. Returns the eventIds. */
export async function fill(client: Client): Promise<readonly string[]> {
  for (let index = 0; index < 15; index += 1) await client.open(`r/${index}`);
  const publishes = Array.from({ length: 360 }, (_, index) =>
    client.publish(`r/${index % 3}`, Buffer.from([index, index >> 8, 0, 255]), { "svc-index": String(index) }),
  );
  const sent = await Promise.all(publishes);
  for (let index = 0; index < 10; index += 1) sent.push(await client.publish("r/5", `one by one ${index}`));
  sent.push(await client.publish("r/6", Buffer.alloc(65_536, 0xfe)));
  await client.close("r/5");
  await client.close("r/7");
  await client.open("r/7");
  return sent.map(({ eventId }) => eventId);
}

/** Publishes for three seconds, so that all earlier blocks are older than a retention of one second. */
export async function publishYounger(client: Client, topic: string): Promise<void> {
  const startedAt = performance.now();
  await until("the chain has a younger block", async () => {
    await client.publish(topic, "younger");
    return performance.now() - startedAt > 3_000;
  });
}

export async function ask(client: Client, eventIds: readonly string[]): Promise<Answers> {
  const get = async (path: string): Promise<string> => (await client.http.send({ method: "GET", path })).text;
  const states: string[] = [];
  for (let index = 0; index < 16; index += 1) states.push(await get(`/rest/state?topic=r/${index}`));
  const events: string[] = [];
  for (const eventId of eventIds) events.push(await get(`/rest/getEvent?eventId=${eventId}`));
  const replay = (await replayAll(client)).map((event) => JSON.stringify(event));
  return { list: await get("/rest/list?pageIndex=0&pageSize=99"), states, events, replay };
}
