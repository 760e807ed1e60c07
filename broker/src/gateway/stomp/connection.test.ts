import { once } from "node:events";
import { connect } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, expect, it, vi } from "vitest";
import { closeGraceMs } from "../shared/connection/limits.ts";
import { HeldLedger } from "../testing/held-ledger.ts";
import { nameBytesMax } from "./limits.ts";
import { RawClient } from "./testing/raw-client.ts";
import { StompWorld, type StompWorldOptions } from "./testing/stomp-world.ts";

let world: StompWorld | undefined;
afterEach(async () => {
  vi.useRealTimers();
  await world?.stop();
  world = undefined;
});

async function start(options: StompWorldOptions = {}): Promise<number> {
  world = await StompWorld.start(options);
  return world.port;
}

it.each([
  [undefined, "1.0"],
  ["1.0", "1.0"],
  ["1.1", "1.1"],
  ["1.0,1.1,1.2", "1.2"],
  ["1.1,2.0", "1.1"],
])("answers the accept-version %s with version %s", async (accepted, version) => {
  const client = await RawClient.open(await start());
  client.send("CONNECT", accepted === undefined ? {} : { "accept-version": accepted });
  const { headers } = await client.next("CONNECTED");
  expect(headers).toMatchObject({ version, server: "Stele/test", session: expect.stringMatching(/^[0-9a-f-]{36}$/) });
});

it("refuses a client that speaks none of the broker's versions, and names these", async () => {
  const client = await RawClient.open(await start());
  client.send("STOMP", { "accept-version": "2.0" });
  const { headers, body } = await client.next("ERROR");
  expect(headers).toMatchObject({ version: "1.0,1.1,1.2", "content-type": "text/plain" });
  expect(body).toContain("1.0 1.1 1.2");
  await client.closed;
});

it("answers each SEND with the eventId of a durable event, in the order of the SENDs", async () => {
  const client = await RawClient.connect(await start());
  for (const receipt of ["1", "2", "3"])
    client.send("SEND", { destination: "a/b", receipt, "svc-x": receipt }, receipt);
  for (const receipt of ["1", "2", "3"]) {
    const { headers } = await client.next("RECEIPT");
    expect(headers["receipt-id"]).toBe(receipt);
    const event = await world?.broker.getEvent({ eventId: headers["eventId"] ?? "", groupId: undefined });
    expect(event).toMatchObject({ topic: "a/b", sequence: Number(receipt), extensions: [["svc-x", receipt]] });
    expect(Buffer.from(event?.content ?? []).toString()).toBe(receipt);
  }
});

it.each(["1.0", "1.1", "1.2"])("over STOMP %s, delivers the content and headers of a SEND", async (version) => {
  const client = await RawClient.connect(await start(), version);
  client.send("SUBSCRIBE", { id: "s", destination: "a/+", receipt: "subscribed" });
  const { headers: subscribed } = await client.next("RECEIPT");
  const fields = { "content-type": "text/plain", mine: "x", "svc-format": "json", "content-length": "3" };
  client.send("SEND", { destination: "a/b", receipt: "sent", ...fields }, "x\0y");
  const frames = [await client.nextAny(), await client.nextAny()];
  const message = frames.find((frame) => frame?.command === "MESSAGE");
  const receipt = frames.find((frame) => frame?.command === "RECEIPT");
  expect(message?.body).toBe("x\0y");
  expect(message?.headers).toEqual({
    ...fields,
    "svc-content-type": "text/plain",
    "svc-user-mine": "x",
    subscription: "s",
    destination: "a/b",
    "message-id": receipt?.headers["eventId"],
    eventId: receipt?.headers["eventId"],
    "subscription-id": subscribed["subscription-id"],
  });
});

it("refuses a SEND by an ERROR with the error code and the receipt, and closes the connection", async () => {
  const client = await RawClient.connect(await start());
  client.send("SEND", { destination: "a+b", receipt: "7" }, "x");
  const { headers } = await client.next("ERROR");
  expect(headers).toMatchObject({ "receipt-id": "7", code: "100106", message: expect.stringContaining("invalid") });
  await client.closed;
});

it("refuses a frame before CONNECT by an ERROR with the frame's receipt", async () => {
  const client = await RawClient.open(await start());
  client.send("SEND", { destination: "a", receipt: "7" }, "x");
  expect((await client.next("ERROR")).headers["receipt-id"]).toBe("7");
});

it.each([
  ["lacks a header", (client: RawClient) => client.send("SEND", { receipt: "bad" }, "x"), "bad"],
  ["is unknown", (client: RawClient) => client.send("HELLO", { receipt: "bad" }), "bad"],
  ["cannot be read", (client: RawClient) => client.write("SEND\nreceipt:bad\na:\\x\n\nx\0"), "bad"],
  [
    "is refused later",
    (client: RawClient) => client.send("SUBSCRIBE", { id: "1", destination: "a/#/b", receipt: "bad" }),
    "bad",
  ],
] as const)(
  "answers the frames before a frame that %s, then sends an ERROR, and ignores later frames",
  async (_, send, receipt) => {
    const ledger = new HeldLedger();
    const client = await RawClient.connect(await start({ change: ledger.change }));
    await world?.broker.open({ topic: "a", groupId: undefined });
    ledger.hold();
    client.send("SEND", { destination: "a", receipt: "good" }, "x");
    await ledger.reached;
    send(client);
    client.send("SEND", { destination: "a", receipt: "late" }, "y");
    const other = await RawClient.connect(world?.port ?? 0);
    other.send("BEGIN", { transaction: "t", receipt: "r" });
    await other.next("RECEIPT"); // By now the broker has read all that the first client sent.
    expect(client.frames).toHaveLength(1); // CONNECTED
    ledger.release();
    expect((await client.next("RECEIPT")).headers["receipt-id"]).toBe("good");
    expect((await client.next("ERROR")).headers["receipt-id"]).toBe(receipt);
    await client.closed;
    expect(await world?.broker.state({ topic: "a", groupId: undefined })).toMatchObject({ sequence: 1 });
  },
);

it.each(["1.0", "1.1"])(
  "returns the receipt and id of a STOMP %s client with their carriage returns",
  async (version) => {
    const client = await RawClient.connect(await start(), version);
    client.send("SUBSCRIBE", { id: "s\r1", destination: "a", receipt: "r\r1" });
    expect((await client.next("RECEIPT")).headers["receipt-id"]).toBe("r\r1");
    client.send("SEND", { destination: "a", "svc-x": "a\rb" }, "x");
    const { headers } = await client.next("MESSAGE");
    expect(headers["subscription"]).toBe("s\r1");
    expect(headers).not.toHaveProperty("svc-x"); // a client may read its CR as the end of the line
  },
);

it("escapes a receipt and id over STOMP 1.1, and keeps their carriage returns", async () => {
  const client = await RawClient.connect(await start(), "1.1");
  client.write("SUBSCRIBE\nid:s\\n1\r\ndestination:a\nreceipt:r\\c1\\n\r\n\n\0");
  expect((await client.next("RECEIPT")).headers["receipt-id"]).toBe("r\\c1\\n\r"); // this client decodes nothing
  client.send("SEND", { destination: "a" }, "x");
  expect((await client.next("MESSAGE")).headers["subscription"]).toBe("s\\n1\r");
});

it.each([
  ["receipt", "BEGIN", { transaction: "t" }],
  ["transaction", "BEGIN", {}],
  ["id", "SUBSCRIBE", { destination: "a" }],
] as const)("refuses the header %s if it is longer than the limit", async (name, command, fields) => {
  const client = await RawClient.connect(await start());
  client.send(command, { ...fields, [name]: "x".repeat(nameBytesMax + 1) });
  const { headers } = await client.next("ERROR");
  expect(headers["message"]).toContain(`"${name}" has more than ${nameBytesMax} bytes`);
});

it("publishes one event for two SENDs with the same publish key", async () => {
  const client = await RawClient.connect(await start());
  for (const receipt of ["1", "2"]) client.send("SEND", { destination: "a", receipt, "svc-publish-key": "k" }, "x");
  const receipts = [await client.next("RECEIPT"), await client.next("RECEIPT")];
  expect(receipts[0]?.headers["eventId"]).toBe(receipts[1]?.headers["eventId"]);
  expect(await world?.broker.state({ topic: "a", groupId: undefined })).toMatchObject({ sequence: 1 });
});

it.each([
  ["SEND", {}, /"destination" is missing/],
  ["SUBSCRIBE", { destination: "a" }, /"id" is missing/],
  ["SUBSCRIBE", { id: "1" }, /"destination" is missing/],
  ["SUBSCRIBE", { id: "1", destination: "a", ack: "maybe" }, /"ack" is "maybe"/],
  ["SUBSCRIBE", { id: "1", destination: "a", "prefetch-count": "0" }, /prefetch-count/],
  ["SUBSCRIBE", { id: "1", destination: "a", "svc-subscriptionId": "x" }, /not a UUID/],
  ["SUBSCRIBE", { id: "1", destination: "a", selector: "b = 1" }, /selectors/],
  ["SUBSCRIBE", { id: "1", destination: "a/#/b" }, /pattern is invalid/],
  ["SUBSCRIBE", { id: "1", destination: "a", eventId: "x" }, /eventId/],
  ["SUBSCRIBE", { id: "1", destination: "a", groupId: "9" }, /unknown group/],
  ["UNSUBSCRIBE", { id: "1" }, /no subscription "1"/],
  ["ACK", { id: "1-x" }, /no message "1-x"/],
  ["ACK", {}, /"id" is missing/],
  ["NACK", { id: "x" }, /no message "x"/],
  ["COMMIT", { transaction: "t" }, /"t" is not open/],
  ["ABORT", { transaction: "t" }, /"t" is not open/],
  ["BEGIN", {}, /"transaction" is missing/],
  ["SEND", { destination: "a", transaction: "t" }, /"t" is not open/],
  ["CONNECT", {}, /open already/],
  ["HELLO", {}, /not a command/],
] as const)(
  "refuses a %s with the headers %j, says why in the ERROR, and closes",
  async (command, headers, message) => {
    const client = await RawClient.connect(await start());
    client.send(command, headers);
    const error = await client.next("ERROR");
    expect(error.headers["message"]).toMatch(message);
    expect(Number(error.headers["code"])).toBeGreaterThan(100_000);
    await client.closed;
  },
);

it("answers every frame that asks for a RECEIPT, in order", async () => {
  const client = await RawClient.connect(await start());
  client.send("SEND", { destination: "a", receipt: "1" }, "x");
  client.send("SUBSCRIBE", { id: "s", destination: "b", receipt: "2" });
  client.send("BEGIN", { transaction: "t", receipt: "3" });
  client.send("SEND", { transaction: "t", destination: "a", receipt: "4" });
  client.send("ABORT", { transaction: "t", receipt: "5" });
  client.send("UNSUBSCRIBE", { id: "s", receipt: "6" });
  client.send("DISCONNECT", { receipt: "7" });
  client.send("SEND", { destination: "a", receipt: "8" }, "not taken");
  for (const receipt of ["1", "2", "3", "4", "5", "6", "7"]) {
    expect((await client.next("RECEIPT")).headers["receipt-id"]).toBe(receipt);
  }
  await client.closed;
  expect(await world?.broker.state({ topic: "a", groupId: undefined })).toMatchObject({ sequence: 1 });
});

it("sends receipts that the client did not ask for if the settings say so", async () => {
  const client = await RawClient.connect(await start({ settings: { hasImplicitReceipts: true } }));
  client.send("SUBSCRIBE", { id: "s", destination: "b" });
  const { headers } = await client.next("RECEIPT");
  expect(headers).toEqual({ "receipt-id": "s", "subscription-id": expect.any(String) });
  client.send("UNSUBSCRIBE", { id: "s" });
  expect((await client.next("RECEIPT")).headers).toEqual({ "receipt-id": "s" });
});

it("ends a connection whose client sends no CONNECT in time, or speaks another protocol", async () => {
  const port = await start({ settings: { connectTimeoutMs: 50 } });
  const silent = await RawClient.open(port);
  silent.write("\n\n");
  expect((await silent.next("ERROR")).headers["message"]).toContain("no CONNECT in time");
  const other = await RawClient.open(port);
  other.write("GET / HTTP/1.1\r\n");
  await other.next("ERROR");
  await other.closed;
});

it("closes its side at once after an ERROR, and resets the connection if the client does not close", async () => {
  const port = await start();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }); // stops the broker's timers
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => {});
  let text = "";
  socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
  socket.write("GET / HTTP/1.1\r\n");
  await once(socket, "end");
  expect(text).toMatch(/^ERROR\n/);
  vi.advanceTimersByTime(closeGraceMs);
  while (!socket.destroyed) {
    socket.write("anybody there?"); // answered by a reset
    await turn();
  }
});

it("keeps a connection while its client sends heart-beats, and ends it when they stop", async () => {
  const client = await connectWithHeartBeats();
  for (let count = 0; count < 5; count += 1) {
    vi.advanceTimersByTime(1_900);
    client.write("\n");
    await RawClient.connect(world?.port ?? 0); // By now the broker has read the heart-beat.
  }
  expect(client.frames).toHaveLength(1); // CONNECTED
  vi.advanceTimersByTime(2_000);
  expect((await client.next("ERROR")).headers["message"]).toContain("no heart-beat");
  await client.closed;
});

it("does not end a client whose heart-beat came in time, but was not read before the timer ran", async () => {
  const client = await connectWithHeartBeats();
  await turn(); // From here on, the broker reads the heart-beat only after this turn.
  client.write("\n");
  vi.advanceTimersByTime(2_000); // As after a pause of the process.
  client.send("BEGIN", { transaction: "t", receipt: "r" });
  await client.next("RECEIPT");
});

/** Stops the broker's timers, and connects a client that promises a heart-beat every second. */
async function connectWithHeartBeats(): Promise<RawClient> {
  const port = await start({ settings: { heartBeatMs: 1_000 } });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  return RawClient.connect(port, "1.2", { "heart-beat": "1000,0" });
}

it("sends an ERROR to its clients when the broker stops", async () => {
  const client = await RawClient.connect(await start());
  await world?.server.drain();
  expect((await client.next("ERROR")).headers["message"]).toContain("the broker stops");
  await client.closed;
});

it("ends a connection by an ERROR with 100504 when unSubscribe removes its subscription", async () => {
  const subscriptionId = "0a0a0a0a-1111-4222-8333-444444444444";
  const client = await RawClient.connect(await start());
  client.send("SUBSCRIBE", { id: "s", destination: "t", receipt: "r", "svc-subscriptionId": subscriptionId });
  await client.next("RECEIPT");
  await world?.broker.unSubscribe({ subscriptionId });
  const { headers } = await client.next("ERROR");
  expect(headers).toMatchObject({ code: "100504", message: expect.stringContaining("removed") });
  await client.closed;
});
