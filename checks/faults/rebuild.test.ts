import { expect, it } from "vitest";
import type { Client } from "../harness/client.ts";
import { chainWorlds } from "../harness/worlds.ts";
import { removeStore } from "./support/remove-store.ts";
import { replayAll } from "./support/replay.ts";

interface Answers {
  readonly list: string;
  readonly states: readonly string[];
  readonly events: readonly string[];
  readonly replay: readonly string[];
}

it.concurrent.each(chainWorlds)(
  "$name: after its index is deleted, the broker rebuilds it from the chain: list, state, getEvent and replay are equal byte for byte (ARCHITECTURE, invariant 5)",
  async (world) => {
    await using running = await world.start();
    const { before, eventIds } = await fill(running.client);
    expect((await running.stop()).code).toBe(0);
    expect(removeStore(running.dataDir)).toContain("store.sqlite");
    await running.resume();
    const { client } = running;
    expect(await ask(client, eventIds)).toEqual(before);
    const [eventId = ""] = eventIds;
    const next = await client.publish("r/0", "after the rebuild");
    expect(next.eventId.split("-").slice(0, 2)).toEqual([eventId.split("-")[0], "121"]);
    await client.close("r/1");
  },
);

/** Events one by one, in batches, large, binary and with extensions; closed, reopened and empty topics. */
async function fill(client: Client): Promise<{ before: Answers; eventIds: readonly string[] }> {
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
  const eventIds = sent.map(({ eventId }) => eventId);
  return { before: await ask(client, eventIds), eventIds };
}

async function ask(client: Client, eventIds: readonly string[]): Promise<Answers> {
  const get = async (path: string): Promise<string> => (await client.http.send({ method: "GET", path })).text;
  const states: string[] = [];
  for (let index = 0; index < 16; index += 1) states.push(await get(`/rest/state?topic=r/${index}`));
  const events: string[] = [];
  for (const eventId of eventIds) events.push(await get(`/rest/getEvent?eventId=${eventId}`));
  const replay = (await replayAll(client)).map((event) => JSON.stringify(event));
  return { list: await get("/rest/list?pageIndex=0&pageSize=99"), states, events, replay };
}
