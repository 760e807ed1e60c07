import { afterEach, expect, it } from "vitest";
import type { Topic } from "../../domain/topic.ts";
import { RawClient } from "./testing/raw-client.ts";
import { StompWorld, type StompWorldOptions } from "./testing/stomp-world.ts";

let world: StompWorld | undefined;
afterEach(async () => {
  await world?.stop();
  world = undefined;
});

async function connect(options: StompWorldOptions = {}): Promise<RawClient> {
  world = await StompWorld.start(options);
  return RawClient.connect(world.port);
}

function begin(client: RawClient, destinations: readonly string[]): void {
  client.send("BEGIN", { transaction: "t" });
  for (const destination of destinations) client.send("SEND", { transaction: "t", destination }, destination);
}

async function state(topic: string): Promise<Topic | undefined> {
  const isThere = await world?.broker.exist({ topic, groupId: undefined });
  return isThere === true ? world?.broker.state({ topic, groupId: undefined }) : undefined;
}

async function sequence(topic: string): Promise<number | undefined> {
  return (await state(topic))?.sequence;
}

it("publishes the SENDs of a transaction together when it is committed, and keeps the order of other SENDs", async () => {
  const client = await connect();
  client.send("SUBSCRIBE", { id: "s", destination: "#", receipt: "s" });
  await client.next("RECEIPT");
  begin(client, ["a", "a", "b"]);
  client.send("SEND", { destination: "before" }, "before");
  client.send("COMMIT", { transaction: "t", receipt: "committed" });
  client.send("SEND", { destination: "after" }, "after");
  const found = [];
  while (found.length < 6) found.push((await client.nextAny()) ?? expect.fail("closed"));
  expect(found.flatMap(({ command, body }) => (command === "MESSAGE" ? [body] : []))).toEqual([
    "before",
    "a",
    "a",
    "b",
    "after",
  ]);
  expect(found.find(({ command }) => command === "RECEIPT")?.headers["receipt-id"]).toBe("committed");
  const [a, b] = [await state("a"), await state("b")];
  expect(a?.blockNumber).toBe(b?.blockNumber);
});

it("publishes nothing of a transaction with a refused SEND", async () => {
  const client = await connect();
  begin(client, ["a", "b", "a+"]);
  client.send("COMMIT", { transaction: "t", receipt: "7" });
  const { headers } = await client.next("ERROR");
  expect(headers).toMatchObject({ "receipt-id": "7", code: "100106" });
  expect([await sequence("a"), await sequence("b")]).not.toContain(1);
});

it("publishes nothing of an aborted transaction, and frees its name", async () => {
  const client = await connect();
  begin(client, ["a"]);
  client.send("ABORT", { transaction: "t" });
  begin(client, ["b"]);
  client.send("COMMIT", { transaction: "t", receipt: "1" });
  await client.next("RECEIPT");
  expect([await sequence("a"), await sequence("b")]).toEqual([undefined, 1]);
});

it("publishes nothing of a transaction whose client disconnects before it commits", async () => {
  const client = await connect();
  begin(client, ["a"]);
  client.send("DISCONNECT", { receipt: "1" });
  await client.next("RECEIPT");
  await client.closed;
  expect(await sequence("a")).toBeUndefined();
});

it("acknowledges and rejects events only when the transaction is committed", async () => {
  const client = await connect();
  client.send("SUBSCRIBE", {
    id: "s",
    destination: "a",
    ack: "client-individual",
    "prefetch-count": "2",
    receipt: "s",
  });
  await client.next("RECEIPT");
  for (const body of ["1", "2", "3"]) client.send("SEND", { destination: "a" }, body);
  const [first, second] = [await client.next("MESSAGE"), await client.next("MESSAGE")];
  client.send("BEGIN", { transaction: "t" });
  client.send("NACK", { id: first.headers["ack"] ?? "", transaction: "t" });
  client.send("ACK", { id: second.headers["ack"] ?? "", transaction: "t" });
  client.send("BEGIN", { transaction: "other", receipt: "still" });
  expect((await client.next("RECEIPT")).headers["receipt-id"]).toBe("still"); // and no MESSAGE
  client.send("COMMIT", { transaction: "t", receipt: "committed" });
  expect((await client.next("RECEIPT")).headers["receipt-id"]).toBe("committed");
  const bodies = [(await client.next("MESSAGE")).body, (await client.next("MESSAGE")).body];
  expect(bodies).toEqual(["1", "3"]);
});

it.each([
  ["a transaction of two groups", [{ groupId: "1" }, { groupId: "" }, { groupId: "2" }], /group/],
  ["a publish key in a transaction", [{ "svc-publish-key": "k" }], /no key of its own/],
] as const)("refuses %s", async (_, fields, message) => {
  const client = await connect();
  client.send("BEGIN", { transaction: "t" });
  for (const more of fields) client.send("SEND", { transaction: "t", destination: "a", ...more });
  client.send("COMMIT", { transaction: "t" });
  expect((await client.next("ERROR")).headers["message"]).toMatch(message);
});

it("refuses to begin a transaction that is open", async () => {
  const client = await connect();
  begin(client, []);
  client.send("BEGIN", { transaction: "t", receipt: "7" });
  expect((await client.next("ERROR")).headers).toMatchObject({ "receipt-id": "7", code: "200001" });
});
