import { expect, it } from "vitest";
import { chainWorlds } from "../harness/worlds.ts";
import { ask, fill } from "./support/answers.ts";
import { removeStore } from "./support/remove-store.ts";

it.concurrent.each(chainWorlds)(
  "$name: after its index is deleted, the broker rebuilds it from the chain: list, state, getEvent and replay are equal byte for byte (ARCHITECTURE, invariant 5)",
  async (world) => {
    await using running = await world.start();
    const eventIds = await fill(running.client);
    const before = await ask(running.client, eventIds);
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
