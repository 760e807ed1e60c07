import { describe, expect, test } from "vitest";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { startReceiver } from "../testing/receiver.ts";
import { Connection } from "./connection.ts";
import { ConnectionPool, type ConnectionPoolOptions, type Lease } from "./connection-pool.ts";
import { buildConnector } from "undici";
import { Exchange } from "../exchange.ts";

const answered = { isReusable: true, isAnswered: true };
const broken = { isReusable: false, isAnswered: false };

function createPool(limits: Partial<ConnectionPoolOptions> = {}) {
  const clock = new VirtualClock();
  const pool = new ConnectionPool({
    clock,
    connectionsMax: 2,
    connectionsTotalMax: 4,
    bytesPerSecondMax: 1_000_000,
    open: (origin, onClosed) => new Connection(origin, { connect: buildConnector({}), headerBytesMax: 1000, onClosed }),
    ...limits,
  });
  /** Names of requests in the order in which they got a connection; `not` marks a request that got none. */
  const granted: string[] = [];
  const leases = new Map<string, Lease>();
  const acquire = (name: string, options: { bytes?: number; origin?: string; signal?: AbortSignal } = {}): void => {
    const { bytes = 1, origin = `http://${name.split(" ")[0]}.example`, signal } = options;
    const note = (lease: Lease | undefined): void => {
      granted.push(lease === undefined ? `not ${name}` : name);
      if (lease !== undefined) leases.set(name, lease);
    };
    void pool.acquire({ origin, bytes }, signal === undefined ? [] : [signal]).then(note);
  };
  const release = async (name: string, usage = answered): Promise<void> => {
    leases.get(name)?.release(usage);
    await clock.advance(0);
  };
  /** Returns and clears `granted`. */
  const takeGranted = async (): Promise<readonly string[]> => {
    await clock.advance(0);
    return granted.splice(0);
  };
  return { pool, clock, acquire, release, takeGranted };
}

describe("waiting requests", () => {
  test("of one receiver get connections in order, up to its limit", async () => {
    const { pool, acquire, release, takeGranted } = createPool();
    for (const name of ["a 1", "a 2", "a 3", "a 4"]) acquire(name);
    expect(await takeGranted()).toEqual(["a 1", "a 2"]);
    expect(pool.waitingCount).toBe(2);
    await release("a 2");
    expect(await takeGranted()).toEqual(["a 3"]);
    await release("a 1");
    expect(await takeGranted()).toEqual(["a 4"]);
    expect(pool.waitingCount).toBe(0);
  });

  test("of several receivers get connections in turn", async () => {
    const { acquire, release, takeGranted } = createPool({ connectionsMax: 9, connectionsTotalMax: 2 });
    for (const name of ["a 1", "a 2", "a 3", "b 1", "c 1"]) acquire(name);
    expect(await takeGranted()).toEqual(["a 1"]); // Receivers without an answer may use 3/4 of the 2 connections, rounded down.
    const order: string[] = [];
    for (const name of ["a 1", "a 2", "b 1", "a 3"]) {
      await release(name, broken);
      order.push(...(await takeGranted()));
    }
    expect(order).toEqual(["a 2", "b 1", "a 3", "c 1"]);
  });

  test("stop waiting when their signal aborts or the pool closes", async () => {
    const { pool, acquire, takeGranted } = createPool({ connectionsMax: 1 });
    const aborting = new AbortController();
    acquire("a 1");
    acquire("a 2", { signal: aborting.signal });
    acquire("a 3");
    aborting.abort();
    expect(await takeGranted()).toEqual(["a 1", "not a 2"]);
    await pool.close();
    acquire("a 4");
    expect(await takeGranted()).toEqual(["not a 3", "not a 4"]);
    expect(pool.waitingCount).toBe(0);
  });

  test("of a receiver over its rate limit use no connection", async () => {
    const { pool, clock, acquire, release, takeGranted } = createPool({ bytesPerSecondMax: 1000 });
    acquire("a 1", { bytes: 3000 });
    await takeGranted();
    await release("a 1", broken);
    acquire("a 2");
    acquire("b 1");
    expect(await takeGranted()).toEqual(["b 1"]);
    expect(pool.connectionCount).toBe(1);
    await clock.advance(1999);
    expect(await takeGranted()).toEqual([]);
    await clock.advance(1);
    expect(await takeGranted()).toEqual(["a 2"]);
  });
});

test("receivers that do not answer leave a quarter of the connections to those that do", async () => {
  const { acquire, release, takeGranted } = createPool();
  acquire("good 0");
  await takeGranted();
  await release("good 0");
  for (const name of ["a", "b", "c", "d", "e"]) acquire(`${name} 1`);
  expect(await takeGranted()).toEqual(["a 1", "b 1", "c 1"]);
  for (const name of ["good 1", "good 2"]) acquire(name);
  expect(await takeGranted()).toEqual(["good 1"]);
  await release("good 1");
  expect(await takeGranted()).toEqual(["good 2"]);
});

test("receivers that did not answer use at most half of the connections, so that a new receiver need not wait for them", async () => {
  const { acquire, release, takeGranted } = createPool();
  for (const name of ["a", "b", "c"]) acquire(`${name} 1`);
  await takeGranted();
  for (const name of ["a", "b", "c"]) await release(`${name} 1`, broken);
  for (const name of ["a", "b", "c"]) acquire(`${name} 2`);
  expect(await takeGranted()).toEqual(["a 2", "b 2"]);
  acquire("new 1");
  expect(await takeGranted()).toEqual(["new 1"]);
  await release("new 1");
  expect(await takeGranted()).toEqual([]);
  await release("a 2", broken);
  expect(await takeGranted()).toEqual(["c 2"]);
});

test("a receiver counts as answering from its first answer until it fails", async () => {
  const { acquire, release, takeGranted } = createPool({ connectionsMax: 9 });
  for (const name of ["a 1", "b 1", "b 2", "b 3"]) acquire(name);
  expect(await takeGranted()).toEqual(["a 1", "b 1", "b 2"]);
  await release("a 1");
  acquire("a 2");
  acquire("a 3");
  expect(await takeGranted()).toEqual(["b 3", "a 2"]);
  await release("a 2", broken);
  expect(await takeGranted()).toEqual([]);
});

describe("the pool", () => {
  test("closes the connection that was idle for longest if there is no room", async () => {
    await using first = await startReceiver((response) => response.end());
    await using second = await startReceiver((response) => response.end());
    await using third = await startReceiver((response) => response.end());
    const { pool } = createPool({ connectionsTotalMax: 2 });
    const call = async ({ url }: { url: string }) =>
      use(await pool.acquire({ origin: new URL(url).origin, bytes: 1 }, []));
    await call(first);
    await call(second);
    await call(first);
    expect(pool.connectionCount).toBe(2);
    await call(third);
    expect(pool.connectionCount).toBe(2);
    await call(first);
    expect([first, second, third].map((receiver) => receiver.connectionCount())).toEqual([1, 1, 1]);
    await call(second);
    expect(second.connectionCount()).toBe(2);
    await pool.close();
    expect(pool.connectionCount).toBe(0);
  });

  test("forgets a connection that its receiver closes", async () => {
    await using receiver = await startReceiver((response) => response.writeHead(200, { connection: "close" }).end());
    const { pool } = createPool();
    await use(await pool.acquire({ origin: new URL(receiver.url).origin, bytes: 1 }, []));
    await expect.poll(() => pool.connectionCount).toBe(0);
  });
});

/** Sends a request on the leased connection, waits for the answer and releases the lease. */
async function use(lease: Lease | undefined): Promise<void> {
  const exchange = new Exchange({ bodyBytesMax: 1000, mayStart: undefined });
  lease?.connection.dispatch({ path: "/", method: "GET" }, exchange);
  expect(await exchange.end).toMatchObject({ kind: "answered" });
  lease?.release(answered);
}
