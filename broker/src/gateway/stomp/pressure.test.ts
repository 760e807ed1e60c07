import { afterEach, expect, it, vi } from "vitest";
import { withSessionCalls } from "../../engine/testing/with-session-calls.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { createDeferred, type Deferred } from "../../lib/deferred.ts";
import { TimeSlices } from "../../lib/time-slices.ts";
import { RawClient } from "./testing/raw-client.ts";
import { StompWorld, type StompWorldOptions } from "./testing/stomp-world.ts";

let world: StompWorld | undefined;
afterEach(async () => {
  await world?.stop();
  world = undefined;
});

async function start(options: StompWorldOptions = {}): Promise<number> {
  world = await StompWorld.start(options);
  return world.port;
}

/** How long a test waits for a condition: as long as the test may take. */
const patienceMs = 60_000;

const oneCall = { topic: "t", groupId: undefined, content: new Uint8Array(), extensions: [], mayBeEmpty: true };

/** One transaction is in progress at most, so that what waits behind it keeps waiting. */
const heldLimits = { pipelineAfterMs: 60_000 };

/** Starts a world whose chain takes one publish, and nothing more until the gate opens. Sends it 50 more publishes of "first" to topic "t". */
async function startFull(options: StompWorldOptions = {}): Promise<Deferred<void>> {
  const gate = createDeferred<void>();
  let isHeld = false;
  const port = await start({
    ...options,
    limits: { publishesWaitingMax: 1, ...heldLimits, ...options.limits },
    change: (ledger) => {
      const append = ledger.append.bind(ledger);
      ledger.append = async (...order) => {
        if (isHeld) await gate.promise;
        return append(...order);
      };
    },
  });
  const first = await RawClient.connect(port);
  first.send("SEND", { destination: "t", receipt: "r" }, "first");
  await first.next("RECEIPT");
  isHeld = true;
  for (let count = 0; count < 50; count += 1) first.send("SEND", { destination: "t" }, "first");
  for (let turn = 0; turn < 20; turn += 1) await answered();
  return gate;
}

async function countSubscriptions(): Promise<number> {
  return (await world?.broker.listSubscriptions())?.[0]?.subscriptions.length ?? 0;
}

/** Waits until all connections together hold at least `bytes`. */
async function held(bytes: number): Promise<void> {
  await vi.waitFor(() => expect(world?.heldBytes()).toBeGreaterThanOrEqual(bytes), patienceMs);
}

/** Resolves once the broker has read what was sent before in one piece. */
async function answered(): Promise<void> {
  const client = await RawClient.connect(world?.port ?? 0);
  client.destroy();
}

it("lets a COMMIT wait until the group has room for all its SENDs", async () => {
  const gate = createDeferred<void>();
  let isHeld = false;
  const port = await start({
    limits: { publishesWaitingMax: 4, ...heldLimits },
    change: (ledger) => {
      const append = ledger.append.bind(ledger);
      ledger.append = async (...order) => {
        if (isHeld) await gate.promise;
        return append(...order);
      };
      const limits = { ...ledger.limits, bytesPerTransactionMax: 100, transactionsInFlightMax: 1 };
      Object.defineProperty(ledger, "limits", { value: limits });
    },
  });
  const filler = await RawClient.connect(port);
  filler.send("SEND", { destination: "t", receipt: "r" }, "first");
  await filler.next("RECEIPT");
  isHeld = true;
  // Each fills a transaction: one is in progress, four wait.
  for (let count = 0; count < 5; count += 1) filler.send("SEND", { destination: "t" }, "x".repeat(90));
  await vi.waitFor(() => expect(world?.broker.whenRoom([oneCall], () => {})).toBe(false), patienceMs);
  const client = await RawClient.connect(port);
  client.send("BEGIN", { transaction: "1" });
  for (const text of ["a", "b", "c"]) client.send("SEND", { destination: "t", transaction: "1" }, text);
  client.send("COMMIT", { transaction: "1", receipt: "committed" });
  await answered();
  gate.resolve();
  expect((await client.next("RECEIPT")).headers).toMatchObject({ "receipt-id": "committed" });
});

it("counts publishes that wait for room against the memory budget, and ends the connection that has held one for longest", async () => {
  const gate = await startFull({ memoryBytesMax: 50_000 });
  await vi.waitFor(() => expect(world?.broker.whenRoom([oneCall], () => {})).toBe(false), patienceMs);
  const clients: RawClient[] = [];
  for (const letter of ["a", "b", "c"]) {
    const client = await RawClient.connect(world?.port ?? 0);
    client.send("SEND", { destination: "t", receipt: "r", "content-length": "20000" }, letter.repeat(20_000));
    clients.push(client);
    if (letter !== "c") await held(20_000 * clients.length);
  }
  const [oldest, second, newest] = clients;
  expect((await oldest?.next("ERROR"))?.headers["message"]).toContain("others need the memory");
  gate.resolve();
  for (const client of [second, newest]) expect((await client?.nextAny())?.command).toBe("RECEIPT");
  newest?.send("SUBSCRIBE", { id: "s", destination: "t", eventId: "OFFSET_FIRST" });
  const letters = [];
  while (letters.at(-1) !== "c") letters.push((await newest?.next("MESSAGE"))?.body[0]);
  expect(letters.filter((letter) => letter !== "f")).toEqual(["b", "c"]);
});

it("stops reading from a client with 1,000 waiting answers, even if they belong to SUBSCRIBEs", async () => {
  const gate = await startFull({ limits: { publishesWaitingMax: 100 }, settings: { subscriptionsMax: 5_000 } });
  const client = await RawClient.connect(world?.port ?? 0);
  client.send("SEND", { destination: "t", receipt: "r" }, "x");
  for (let id = 0; id < 1_200; id += 1) client.send("SUBSCRIBE", { id: String(id), destination: "t" });
  await vi.waitFor(async () => expect(await countSubscriptions()).toBeGreaterThanOrEqual(999), patienceMs);
  for (let turn = 0; turn < 100; turn += 1) await answered();
  expect(await countSubscriptions()).toBeLessThanOrEqual(1_000);
  gate.resolve();
  await client.next("RECEIPT");
  await vi.waitFor(async () => expect(await countSubscriptions()).toBe(1_200), patienceMs);
});

/** Asks for 200 long receipts behind a publish that waits. */
function askMany(client: RawClient): void {
  client.send("SEND", { destination: "t" }, "x");
  for (let count = 0; count < 100; count += 1) {
    for (const command of ["BEGIN", "ABORT"]) client.send(command, { transaction: "t", receipt: "r".repeat(600) });
  }
}

it("counts waiting answers against the memory budget until they are sent", async () => {
  const gate = await startFull({ limits: { publishesWaitingMax: 100 }, memoryBytesMax: 300_000 });
  const [oldest, second] = [await RawClient.connect(world?.port ?? 0), await RawClient.connect(world?.port ?? 0)];
  askMany(oldest);
  oldest.send("SUBSCRIBE", { id: "last", destination: "t" });
  await vi.waitFor(async () => expect(await countSubscriptions()).toBe(1), patienceMs); // all of it was read
  askMany(second);
  expect((await oldest.next("ERROR")).headers["message"]).toContain("others need the memory");
  gate.resolve();
  for (let count = 0; count < 200; count += 1) await second.next("RECEIPT");
  // The answers of `second` are sent, so its connection is not ended for the memory of `next`.
  const next = await RawClient.connect(world?.port ?? 0);
  next.write(`SEND\ndestination:t\ncontent-length:200001\n\n${"x".repeat(200_000)}`);
  await answered();
  second.send("BEGIN", { transaction: "t", receipt: "still there" });
  await second.next("RECEIPT");
});

it("serves many tiny frames of one client in slices, each of them once and in order", async () => {
  // Each reading of the clock advances it by a millisecond, so a slice lasts for few frames.
  let [now, turns] = [0, 0];
  const soon = (action: () => void): void => {
    turns += 1;
    setImmediate(action);
  };
  const client = await RawClient.connect(
    await start({ slices: new TimeSlices({ monotonic: () => (now += 1), soon }) }),
  );
  for (let id = 1; id <= 500; id += 1) {
    client.send("BEGIN", { transaction: "t", receipt: String(id) });
    client.send("ABORT", { transaction: "t" });
  }
  for (let id = 1; id <= 500; id += 1) expect((await client.next("RECEIPT")).headers["receipt-id"]).toBe(String(id));
  expect(turns).toBeGreaterThan(50);
});

it("counts the names of transactions against the memory budget", async () => {
  const port = await start({ memoryBytesMax: 180_000 }); // more than the names of one client and its last frame, less than the names of two clients
  const [first, second] = [await RawClient.connect(port), await RawClient.connect(port)];
  for (const client of [first, second]) {
    for (let count = 0; count < 80; count += 1) client.send("BEGIN", { transaction: String(count).padEnd(1_000, "x") });
    client.send("BEGIN", { transaction: "last", receipt: "r" });
    await client.next("RECEIPT");
  }
  expect((await first.next("ERROR")).headers["message"]).toContain("others need the memory");
});

it("counts the names of ended subscriptions against the memory budget", async () => {
  const port = await start({ memoryBytesMax: 170_000 }); // more than the names of one client, less than the names of two clients
  const [first, second] = [await RawClient.connect(port), await RawClient.connect(port)];
  for (const client of [first, second]) {
    for (let count = 0; count < 90; count += 1) {
      const id = String(count).padEnd(1_000, "x");
      client.send("SUBSCRIBE", { id, destination: "t" });
      client.send("UNSUBSCRIBE", { id });
    }
    client.send("BEGIN", { transaction: "t", receipt: "r" });
    await client.next("RECEIPT");
  }
  expect((await first.next("ERROR")).headers["message"]).toContain("others need the memory");
});

it("counts filters against the memory budget, except the first ones", async () => {
  const port = await start({ memoryBytesMax: 300_000 });
  const clients: RawClient[] = [];
  for (const count of [16, 100, 100]) {
    const client = await RawClient.connect(port);
    const destination = Array.from({ length: count }, (_, index) => `a/+/${index}`).join(",");
    client.send("SUBSCRIBE", { id: "s", destination, receipt: "r" });
    await client.next("RECEIPT");
    clients.push(client);
  }
  const [few, oldest, newest] = clients;
  expect((await oldest?.next("ERROR"))?.headers["message"]).toContain("others need the memory");
  for (const client of [few, newest]) {
    client?.send("BEGIN", { transaction: "t", receipt: "still there" });
    expect((await client?.nextAny())?.command).toBe("RECEIPT");
  }
});

it("counts empty headers of SENDs in a transaction by the memory that they take", async () => {
  const client = await RawClient.connect(await start());
  client.send("BEGIN", { transaction: "t" });
  const many = Object.fromEntries(Array.from({ length: 900 }, (_, index) => [`h${index}`, ""]));
  for (let count = 0; count < 9; count += 1) client.send("SEND", { transaction: "t", destination: "t", ...many });
  expect((await client.next("ERROR")).headers["message"]).toMatch(/1048576 bytes/);
});

it.each(["groupId", "svc-publish-key"])("counts the bytes of the header %s of SENDs in a transaction", async (name) => {
  const client = await RawClient.connect(await start());
  client.send("BEGIN", { transaction: "t" });
  const long = "x".repeat(30_000);
  for (let count = 0; count < 40; count += 1) {
    client.send("SEND", { transaction: "t", destination: "t", [name]: long });
  }
  expect((await client.next("ERROR")).headers["message"]).toMatch(/1048576 bytes/);
});

it("makes a client wait while the group's publish queue is full, and loses no SEND", async () => {
  const port = await start({ limits: { publishesWaitingMax: 10 } });
  const client = await RawClient.connect(port);
  for (let count = 0; count < 5_000; count += 1) client.send("SEND", { destination: "t", receipt: String(count) }, "x");
  for (let count = 0; count < 5_000; count += 1) {
    expect((await client.next("RECEIPT")).headers["receipt-id"]).toBe(String(count));
  }
});

it("stops delivering to a client that does not read, and continues when it reads", async () => {
  const port = await start();
  const slow = await RawClient.connect(port);
  slow.send("SUBSCRIBE", { id: "s", destination: "t", receipt: "r" });
  await slow.next("RECEIPT");
  slow.pause();
  const publisher = await RawClient.connect(port);
  const body = "x".repeat(60_000);
  for (let count = 0; count < 200; count += 1) {
    publisher.send("SEND", { destination: "t", receipt: String(count) }, body);
    await publisher.next("RECEIPT");
  }
  const [node] = (await world?.broker.listSubscriptions()) ?? [];
  expect(node?.subscriptions[0]?.notifyingCount).toBeGreaterThan(50);
  slow.resume();
  for (let count = 0; count < 200; count += 1) expect((await slow.next("MESSAGE")).body).toHaveLength(60_000);
});

it("counts unfinished frames against the memory budget, and ends the connection that has held memory for longest", async () => {
  const port = await start({ memoryBytesMax: 150_000 });
  const clients: RawClient[] = [];
  for (let count = 0; count < 3; count += 1) {
    const client = await RawClient.connect(port);
    client.write(`SEND\ndestination:t\nreceipt:r\ncontent-length:60000\n\n${"x".repeat(55_000)}`);
    clients.push(client);
    if (count < 2) await held(55_000 * clients.length);
  }
  const [oldest, second, newest] = clients;
  expect((await oldest?.next("ERROR"))?.headers["message"]).toContain("others need the memory");
  for (const client of [second, newest]) {
    client?.write(`${"x".repeat(5_000)}\0`);
    expect((await client?.nextAny())?.command).toBe("RECEIPT");
  }
});

it("counts the frames of transactions against the memory budget", async () => {
  const port = await start({ memoryBytesMax: 400_000 });
  const [first, second] = [await RawClient.connect(port), await RawClient.connect(port)];
  for (const client of [first, second]) {
    client.send("BEGIN", { transaction: "t" });
    for (let count = 0; count < 5; count += 1) {
      client.send("SEND", { transaction: "t", destination: "t", receipt: String(count) }, "x".repeat(60_000));
    }
    for (let count = 0; count < 5; count += 1) await client.next("RECEIPT");
  }
  expect((await first.next("ERROR")).headers["message"]).toContain("others need the memory");
});

it.each([
  ["frames", { sends: 1_001, body: "", message: /1000 frames/ }],
  ["bytes", { sends: 20, body: "x".repeat(60_000), message: /1048576 bytes/ }],
] as const)("bounds the %s of a transaction", async (_, { sends, body, message }) => {
  const client = await RawClient.connect(await start());
  client.send("BEGIN", { transaction: "t" });
  for (let count = 0; count < sends; count += 1) client.send("SEND", { transaction: "t", destination: "t" }, body);
  expect((await client.next("ERROR")).headers["message"]).toMatch(message);
});

it("bounds the transactions of a connection", async () => {
  const client = await RawClient.connect(await start());
  for (let count = 0; count < 101; count += 1) client.send("BEGIN", { transaction: String(count) });
  expect((await client.next("ERROR")).headers["message"]).toMatch(/100 open transactions/);
});

it("ends a connection as soon as its headers are too long, before they end", async () => {
  const client = await RawClient.connect(await start());
  client.write(`SEND\nreceipt:1\na:${"x".repeat(1_000_000)}`);
  expect((await client.next("ERROR")).headers["message"]).toMatch(/more than 65536 bytes/);
  await client.closed;
});

it("counts the headers of a frame against the memory budget while it waits for the store", async () => {
  const memory = createMemoryStore();
  const [begun, going] = [createDeferred<void>(), createDeferred<void>()];
  const claimSession: typeof memory.sessions.claimSession = async (claim) => {
    begun.resolve();
    await going.promise;
    return memory.sessions.claimSession(claim);
  };
  const client = await RawClient.connect(await start({ store: withSessionCalls(memory, { claimSession }) }));
  client.send("SUBSCRIBE", { id: "s", destination: "a", durable: "true", receipt: "r", extra: "x".repeat(50_000) });
  await begun.promise;
  await answered();
  expect(world?.heldBytes()).toBeGreaterThan(50_000);
  going.resolve();
  await client.next("RECEIPT");
  await answered();
  expect(world?.heldBytes()).toBe(0);
});
