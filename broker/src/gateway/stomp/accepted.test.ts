import { Socket } from "node:net";
import { afterEach, expect, it, vi } from "vitest";
import { HeldLedger } from "../testing/held-ledger.ts";
import { RawClient } from "./testing/raw-client.ts";
import { StompWorld } from "./testing/stomp-world.ts";

const durable = { id: "s", destination: "t", "svc-subscriptionId": "0a0a0a0a-1111-4222-8333-444444444444" };
/** More than the buffers of the system and of the broker hold. */
const [count, bodyBytes] = [200, 60_000];

let world: StompWorld | undefined;
afterEach(async () => {
  vi.restoreAllMocks();
  await world?.stop();
  world = undefined;
});

async function subscribe(port: number): Promise<RawClient> {
  const client = await RawClient.connect(port);
  client.send("SUBSCRIBE", { ...durable, receipt: "r" });
  await client.next("RECEIPT");
  return client;
}

/** A client that reads nothing, while the broker's buffers for it are full. */
async function startStalled(): Promise<{ port: number; stalled: RawClient }> {
  world = await StompWorld.start();
  const { port } = world;
  const stalled = await subscribe(port);
  stalled.pause();
  const publisher = await RawClient.connect(port);
  for (let number = 1; number <= count; number += 1) {
    publisher.send("SEND", { destination: "t", receipt: String(number) }, `${number} `.padEnd(bodyBytes, "x"));
    await publisher.next("RECEIPT");
  }
  publisher.destroy();
  return { port, stalled };
}

/** The numbers of the received events. */
function numbers({ frames }: RawClient): readonly number[] {
  return frames.flatMap(({ command, body }) => (command === "MESSAGE" ? [Number.parseInt(body, 10)] : []));
}

/** The number of the event at which the subscription resumes. */
async function resumedFrom(client: RawClient): Promise<number> {
  while (numbers(client).at(-1) !== count) await client.next("MESSAGE");
  const [first = 0] = numbers(client);
  expect(numbers(client)).toEqual(Array.from({ length: count - first + 1 }, (_, index) => first + index));
  return first;
}

it("after the broker cuts off a client that sends no ACKs, its durable subscription resumes at the first event that it missed, or earlier", async () => {
  const { port, stalled } = await startStalled();
  const cutOff = watchDestroyed();
  const next = await subscribe(port); // resumes the subscription of the client that does not read
  const first = await resumedFrom(next);
  await vi.waitFor(() => expect(cutOff).toContain(stalled.localPort), { timeout: 10_000 });
  stalled.resume(); // reads the bytes that the operating system has taken from the broker
  await stalled.closed;
  expect(first).toBeLessThanOrEqual((numbers(stalled).at(-1) ?? 0) + 1);
});

/** The ports of clients whose sockets the broker destroys. */
function watchDestroyed(): readonly (number | undefined)[] {
  const ports: (number | undefined)[] = [];
  const destroy = Socket.prototype.destroy;
  vi.spyOn(Socket.prototype, "destroy").mockImplementation(function (this: Socket, error) {
    ports.push(this.remotePort);
    return destroy.call(this, error);
  });
  return ports;
}

it("after the DISCONNECT of a client that sends no ACKs, its durable subscription resumes after the last event that it got", async () => {
  const { port, stalled } = await startStalled();
  stalled.send("DISCONNECT", { receipt: "bye" });
  stalled.resume();
  await stalled.closed;
  expect(stalled.frames.at(-1)?.headers["receipt-id"]).toBe("bye");
  const publisher = await RawClient.connect(port);
  publisher.send("SEND", { destination: "t" }, String(count + 1));
  const next = await subscribe(port);
  await next.next("MESSAGE");
  expect(numbers(next)[0]).toBe((numbers(stalled).at(-1) ?? 0) + 1);
});

it("lets another connection resume the durable subscription of a client that stops reading after its DISCONNECT", async () => {
  world = await StompWorld.start();
  const { port } = world;
  const publisher = await RawClient.connect(port);
  const stalled = await startBehind(publisher, port);
  stalled.send("DISCONNECT", { receipt: "bye" });
  await publish(publisher, "other"); // Its answer shows that the broker has read the DISCONNECT.
  const next = await subscribe(port);
  expect((await next.next("MESSAGE")).body).toBe("x".repeat(bodyBytes));
});

it("sends no event of a subscription whose RECEIPT comes while DISCONNECT waits", async () => {
  const ledger = new HeldLedger();
  world = await StompWorld.start({ change: ledger.change });
  const { port, broker } = world;
  const publisher = await RawClient.connect(port);
  for (const topic of ["late", "other"]) await publish(publisher, topic);
  const stalled = await startBehind(publisher, port);
  ledger.hold();
  stalled.send("SEND", { destination: "other", receipt: "sent" });
  const late = {
    destination: "late",
    eventId: "OFFSET_FIRST",
    "svc-subscriptionId": durable["svc-subscriptionId"].replaceAll("0a", "0b"),
  };
  stalled.send("SUBSCRIBE", { id: "late", receipt: "subscribed", ...late });
  stalled.send("DISCONNECT", { receipt: "bye" });
  await vi.waitFor(async () => expect((await broker.listSubscriptions())[0]?.subscriptions).toHaveLength(2), 30_000);
  publisher.send("BEGIN", { transaction: "x", receipt: "r" }); // Its answer shows that the broker has read the DISCONNECT.
  await publisher.next("RECEIPT");
  ledger.release();
  for (let count = 0; count < 5; count += 1) await publish(publisher, "other"); // leaves the broker time to deliver the event
  stalled.resume();
  await stalled.closed;
  const last = stalled.frames.slice(-3).map(({ headers }) => headers["receipt-id"]);
  expect(last).toEqual(["sent", "subscribed", "bye"]);
});

it.each<[string, (client: RawClient) => void]>([
  ["a DISCONNECT without receipt", (client) => client.send("DISCONNECT")],
  ["the client's end of its side", (client) => client.finish()],
])("sends no event after %s that waits for an earlier answer", async (_, finish) => {
  const ledger = new HeldLedger();
  world = await StompWorld.start({ change: ledger.change });
  const { port } = world;
  const publisher = await RawClient.connect(port);
  for (const topic of ["t", "other"]) await publish(publisher, topic);
  const [client, watcher] = [await subscribe(port), await RawClient.connect(port)];
  watcher.send("SUBSCRIBE", { id: "s", destination: "t", receipt: "r" });
  await watcher.next("RECEIPT");
  ledger.hold("other");
  client.send("SEND", { destination: "other" });
  finish(client);
  await ledger.reached;
  publisher.send("BEGIN", { transaction: "x", receipt: "r" }); // Its answer shows that the broker has read the end.
  await publisher.next("RECEIPT");
  publisher.send("SEND", { destination: "t" }, "late");
  expect((await watcher.next("MESSAGE")).body).toBe("late");
  ledger.release();
  await client.closed;
  expect(client.frames.map(({ command }) => command)).toEqual(["CONNECTED", "RECEIPT"]);
  expect((await (await subscribe(port)).next("MESSAGE")).body).toBe("late");
});

async function publish(publisher: RawClient, destination: string, body = ""): Promise<void> {
  publisher.send("SEND", { destination, receipt: "r" }, body);
  await publisher.next("RECEIPT");
}

/** A client with a durable subscription that reads nothing, while the broker still has room to write to it. */
async function startBehind(publisher: RawClient, port: number): Promise<RawClient> {
  const stalled = await subscribe(port);
  const waitingBytes = watchWaitingBytes(stalled);
  stalled.pause();
  while (waitingBytes() === 0) await publish(publisher, "t", "x".repeat(bodyBytes));
  return stalled;
}

/** The bytes that the broker's socket of a client keeps until the operating system takes them. */
function watchWaitingBytes(client: RawClient): () => number {
  const sockets: Socket[] = [];
  const cork = Socket.prototype.cork;
  vi.spyOn(Socket.prototype, "cork").mockImplementation(function (this: Socket) {
    if (this.remotePort === client.localPort) sockets.push(this);
    cork.call(this);
  });
  return () => sockets[0]?.writableLength ?? 0;
}
