import { connect, createServer, type Socket } from "node:net";
import { once } from "node:events";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { progressBytesPerSecondMin, progressTimeoutMs } from "../limits.ts";
import { type EndReason, type Holding, MemoryBudget } from "./memory-budget.ts";

const server = createServer();
let socket: Socket;
beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  socket = connect(typeof address === "object" && address !== null ? address.port : 0, "127.0.0.1");
  await once(socket, "connect");
  vi.useFakeTimers({ toFake: ["performance", "setInterval", "clearInterval"] });
});
afterAll(() => {
  vi.useRealTimers();
  socket.destroy();
  server.close();
});

function createBudget(bytesMax: number) {
  const ended: string[] = [];
  let read: (() => number) | undefined;
  const budget = new MemoryBudget({
    bytesMax,
    metrics: {
      connectionEnded: (reason) => ended.push(reason),
      watchBytesInFlight: (one) => {
        read = one;
      },
    },
  });
  const hold = (bytes: number, name?: string): Holding => {
    const holding = budget.createHolding();
    holding.take(bytes);
    if (name !== undefined) {
      holding.awaitClient({ socket, end: (reason: EndReason) => ended.push(`${name} ${reason}`) });
    }
    return holding;
  };
  return { hold, ended, bytes: () => read?.() };
}

test("disconnects the client that is idle for longest if memory is needed, but no client within a second of its start", () => {
  const { hold, ended, bytes } = createBudget(100);
  hold(40, "first");
  vi.advanceTimersByTime(100);
  hold(40, "second");
  const asking = hold(0);
  expect(asking.tryTake(40)).toBe(false);
  expect(ended).toEqual([]);
  vi.advanceTimersByTime(1000);
  expect(asking.tryTake(40)).toBe(true);
  expect(ended).toEqual(["first memory", "memory"]);
  expect(bytes()).toBe(80);
});

test("a finished answer of short results is counted, but disconnects no client within a second of the client's last bytes", () => {
  const { hold, ended, bytes } = createBudget(100);
  hold(60, "idle");
  vi.advanceTimersByTime(1000);
  hold(30, "reading");
  vi.advanceTimersByTime(100);
  const answer = hold(0);
  answer.takeLate(80);
  expect([ended, bytes()]).toEqual([["idle memory", "memory"], 110]);
  expect(answer.tryTake(1)).toBe(false);
});

test("does not disconnect a client that waits for the broker, and counts bytes in use even past the limit", () => {
  const { hold, ended, bytes } = createBudget(100);
  hold(90);
  hold(90).awaitBroker();
  vi.advanceTimersByTime(10 * progressTimeoutMs);
  expect([ended, bytes()]).toEqual([[], 180]);
  expect(hold(0).tryTake(1)).toBe(false);
});

test("disconnects idle clients and clients slower than the minimum pace, and no others", () => {
  const { hold, ended } = createBudget(100);
  hold(1, "silent");
  const [slow, steady] = [hold(1, "slow"), hold(1, "steady")];
  for (let second = 0; second < 12; second += 1) {
    vi.advanceTimersByTime(1000);
    slow.moved(progressBytesPerSecondMin / 2);
    steady.moved(progressBytesPerSecondMin);
  }
  expect(ended).toEqual(["silent slow", "slow"]);
  for (let second = 0; second < 12; second += 1) {
    vi.advanceTimersByTime(1000);
    slow.moved(progressBytesPerSecondMin / 2);
    steady.moved(progressBytesPerSecondMin);
  }
  expect(ended).toEqual(["silent slow", "slow", "slow slow", "slow"]);
});

test("gives an excused client the full time again", () => {
  const { hold, ended } = createBudget(100);
  let isExcused = true;
  hold(1).awaitClient({ socket, end: () => ended.push("end"), isExcused: () => isExcused });
  vi.advanceTimersByTime(1.5 * progressTimeoutMs);
  isExcused = false;
  expect(ended).toEqual([]);
  vi.advanceTimersByTime(1.5 * progressTimeoutMs);
  expect(ended).toEqual(["end", "slow"]);
});

test("a released holding counts no memory, even if it takes more afterwards", () => {
  const { hold, bytes } = createBudget(100);
  const holding = hold(50, "gone");
  holding.release();
  holding.take(10);
  expect(bytes()).toBe(0);
});
