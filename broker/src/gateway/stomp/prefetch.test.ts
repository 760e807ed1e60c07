import { afterEach, expect, it } from "vitest";
import { type FrameFields, RawClient } from "./testing/raw-client.ts";
import { StompWorld } from "./testing/stomp-world.ts";

let world: StompWorld | undefined;
afterEach(() => world?.stop());

async function subscribe(client: RawClient, fields: FrameFields): Promise<void> {
  client.send("SUBSCRIBE", { ack: "client", destination: "other", "prefetch-count": "1000", receipt: "r", ...fields });
  await client.next("RECEIPT");
}

it("if two subscriptions of a connection may have 1,000 unacknowledged events each, a third one may have 10, even after one of the two has ended", async () => {
  world = await StompWorld.start();
  const client = await RawClient.connect(world.port);
  await subscribe(client, { id: "first" });
  await subscribe(client, { id: "second" });
  await subscribe(client, { id: "third", destination: "t" });
  const publisher = await RawClient.connect(world.port);
  for (let number = 1; number <= 11; number += 1)
    publisher.send("SEND", { destination: "t", receipt: "r" }, `${number}`);
  for (let number = 1; number <= 11; number += 1) await publisher.next("RECEIPT");
  for (let number = 1; number < 10; number += 1) await client.next("MESSAGE");
  const tenth = await client.next("MESSAGE");
  client.send("UNSUBSCRIBE", { id: "first", receipt: "unsubscribed" });
  await client.next("RECEIPT"); // Throws if the eleventh event comes first.
  client.send("ACK", { id: tenth.headers["ack"] ?? "none" });
  expect(await client.next("MESSAGE")).toMatchObject({ body: "11" });
});
