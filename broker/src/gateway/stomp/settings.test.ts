import { afterEach, expect, it } from "vitest";
import { opensPerMinuteMax } from "../shared/connection/limits.ts";
import { RawClient } from "./testing/raw-client.ts";
import { StompWorld, type StompWorldOptions } from "./testing/stomp-world.ts";

let world: StompWorld | undefined;
afterEach(async () => {
  await world?.stop();
  world = undefined;
});

async function connect(settings: NonNullable<StompWorldOptions["settings"]>): Promise<RawClient> {
  world = await StompWorld.start({ settings });
  return RawClient.connect(world.port);
}

/** Identifiers of the subscriptions that listSubscriptions returns. */
async function listed(): Promise<readonly string[]> {
  const nodes = (await world?.broker.listSubscriptions()) ?? [];
  return nodes.flatMap(({ subscriptions }) => subscriptions.map((subscription) => subscription.id));
}

it.each(["SEND", "COMMIT"])("%s opens no topic if opensTopics is off", async (command) => {
  const client = await connect({ opensTopics: false });
  await world?.broker.open({ topic: "open", groupId: undefined });
  client.send("SEND", { destination: "open", receipt: "1" }, "x");
  await client.next("RECEIPT");
  if (command === "SEND") client.send("SEND", { destination: "closed" }, "x");
  else {
    client.send("BEGIN", { transaction: "t" });
    client.send("SEND", { transaction: "t", destination: "closed" }, "x");
    client.send("COMMIT", { transaction: "t" });
  }
  expect((await client.next("ERROR")).headers["code"]).toBe("100101");
  expect(await world?.broker.exist({ topic: "closed", groupId: undefined })).toBe(false);
});

it("limits the topics that one connection opens in a minute, not the topics that it publishes to", async () => {
  const client = await connect({});
  for (let count = 0; count < opensPerMinuteMax; count += 1) client.send("SEND", { destination: `t${count}` }, "x");
  client.send("SEND", { destination: "t0", receipt: "known" }, "x");
  expect((await client.next("RECEIPT")).headers["receipt-id"]).toBe("known");
  client.send("SEND", { destination: "one more", receipt: "refused" }, "x");
  const { headers } = await client.next("ERROR");
  expect(headers).toMatchObject({ code: "200300", "receipt-id": "refused" });
  expect(headers["message"]).toContain(`${opensPerMinuteMax} topics within a minute`);
});

it("when a connection breaks, removes its subscription without svc-subscriptionId, and keeps the one that has it", async () => {
  const client = await connect({});
  const id = "0a0a0a0a-1111-4222-8333-444444444444";
  client.send("SUBSCRIBE", { id: "1", destination: "t", receipt: "1" });
  client.send("SUBSCRIBE", { id: "2", destination: "t", receipt: "2", "svc-subscriptionId": id });
  for (const receipt of ["1", "2"]) expect((await client.next("RECEIPT")).headers["receipt-id"]).toBe(receipt);
  expect(await listed()).toHaveLength(2);
  client.reset();
  await expect.poll(listed).toEqual([id]);
});
