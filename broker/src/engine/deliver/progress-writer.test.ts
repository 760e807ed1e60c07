import { expect, it } from "vitest";
import { toPosition } from "../../domain/position.ts";
import { parseSubscriptionId, type SubscriptionId } from "../../domain/subscription.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { silentLogger } from "../../lib/logger.ts";
import type { Progress, Store } from "../../ports/store.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { defaultEngineLimits } from "../limits.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { ProgressWriter } from "./progress-writer.ts";

const id = parseSubscriptionId("00000000-0000-4000-8000-000000000001");
const progress = (index: number): Progress => ({
  id,
  epoch: 0,
  cursor: toPosition(1, index),
  notifiedCount: index,
  failedAttempts: 0,
  failedMs: 0,
  failingSince: 0,
  retryAt: 0,
  notifiedAt: 0,
});

function setUp(saveProgress: Store["saveProgress"], logger = silentLogger) {
  const clock = new VirtualClock();
  const store = Object.assign(createMemoryStore(), { saveProgress });
  return { clock, writer: new ProgressWriter({ store, clock, logger, limits: defaultEngineLimits }) };
}

it("writes 50 ms after the first note, and only the newest cursor", async () => {
  const written: (readonly Progress[])[] = [];
  const { clock, writer } = setUp(async (rows) => {
    written.push(rows);
    return [];
  });
  writer.note(progress(1));
  await clock.advance(30);
  writer.note(progress(2));
  await clock.advance(19);
  expect(written).toEqual([]);
  await clock.advance(1);
  expect(written).toEqual([[progress(2)]]);
});

it("logs once that writes fail, and once that they work again", async () => {
  const lines: string[] = [];
  const write = (level: string) => (message: string) => void lines.push(`${level} ${message}`);
  const logger = { ...silentLogger, info: write("info"), warn: write("warn"), error: write("error") };
  let isAway = true;
  const saveProgress: Store["saveProgress"] = async () => (isAway ? Promise.reject(new Error("away")) : []);
  const { clock, writer } = setUp(saveProgress, logger);
  writer.note(progress(1));
  await clock.advance(60_000);
  isAway = false;
  await clock.advance(60_000);
  expect(lines).toEqual(["warn progress not written", "info progress written again"]);
});

it("writes at once after 100 notes, and makes one write at a time", async () => {
  const written: (readonly Progress[])[] = [];
  const gate = createDeferred<readonly SubscriptionId[]>();
  const { clock, writer } = setUp((rows) => {
    written.push(rows);
    return gate.promise;
  });
  for (let index = 1; index <= 250; index += 1) writer.note(progress(index));
  await clock.settle();
  expect(written).toEqual([[progress(100)]]);
  gate.resolve([]);
  await clock.settle();
  expect(written).toEqual([[progress(100)], [progress(250)]]);
});

it("writes progress noted during a slow write as soon as that write ends", async () => {
  const written: (readonly Progress[])[] = [];
  const gate = createDeferred<readonly SubscriptionId[]>();
  const { clock, writer } = setUp((rows) => {
    written.push(rows);
    return gate.promise;
  });
  writer.note(progress(1));
  await clock.advance(50);
  writer.note(progress(2));
  await clock.advance(50);
  gate.resolve([]);
  await clock.advance(50);
  writer.note(progress(3));
  await clock.advance(50);
  expect(written).toEqual([[progress(1)], [progress(2)], [progress(3)]]);
});

it("after a failed write, writes only the newest cursor", async () => {
  const written: (readonly Progress[])[] = [];
  let isBroken = true;
  const { clock, writer } = setUp(async (rows) => {
    if (isBroken) throw new Error("disk full");
    written.push(rows);
    return [];
  });
  writer.note(progress(5));
  await clock.advance(50);
  expect(writer.find(id)).toEqual(progress(5));
  isBroken = false;
  writer.note(progress(6));
  await clock.advance(defaultEngineLimits.progressRetryDelayMsMin);
  expect(written).toEqual([[progress(6)]]);
});

it("retries a failed write without new progress, after 100 ms, then doubling up to a second", async () => {
  const triedAt: number[] = [];
  let isAway = true;
  const { clock, writer } = setUp(async () => {
    triedAt.push(clock.now() - since);
    return isAway ? Promise.reject(new Error("away")) : [];
  });
  const since = clock.now();
  writer.note(progress(1));
  await clock.advance(4_000);
  expect(triedAt).toEqual([50, 150, 350, 750, 1_550, 2_550, 3_550]);
  isAway = false;
  await clock.advance(60_000);
  expect(triedAt.slice(7)).toEqual([4_550]);
  expect(writer.find(id)).toBeUndefined();
  isAway = true;
  writer.note(progress(2));
  await clock.advance(200);
  expect(triedAt.slice(8)).toEqual([64_050, 64_150]);
});

it("does not write the older cursor of a failed write over a newer one", async () => {
  const written: (readonly Progress[])[] = [];
  const gate = createDeferred<readonly SubscriptionId[]>();
  let isFirst = true;
  const { clock, writer } = setUp(async (rows) => {
    if (isFirst) {
      isFirst = false;
      await gate.promise;
    }
    written.push(rows);
    return [];
  });
  writer.note(progress(1));
  await clock.advance(50);
  writer.note(progress(2));
  gate.reject(new Error("disk full"));
  await clock.advance(defaultEngineLimits.progressRetryDelayMsMin);
  expect(written).toEqual([[progress(2)]]);
});

it("calls onRefused with the rows that the store refused", async () => {
  const refused: Progress[] = [];
  const { store, clock } = { store: createMemoryStore(), clock: new VirtualClock() };
  const onRefused = (rows: readonly Progress[]): void => void refused.push(...rows);
  const writer = new ProgressWriter({ store, clock, logger: silentLogger, limits: defaultEngineLimits, onRefused });
  writer.note(progress(1));
  await writer.flush();
  expect(refused).toEqual([progress(1)]);
});

it("forget drops noted progress only of the given epoch", async () => {
  const { writer } = setUp(async () => []);
  writer.note({ ...progress(1), epoch: 2 });
  for (const epoch of [1, 3]) writer.forget({ id, epoch });
  expect(writer.find(id)).toBeDefined();
  writer.forget({ id, epoch: 2 });
  expect(writer.find(id)).toBeUndefined();
});

it("does not retry a failed write whose progress was dropped during the write", async () => {
  const gate = createDeferred<readonly SubscriptionId[]>();
  const written: (readonly Progress[])[] = [];
  const { clock, writer } = setUp((rows) => {
    written.push(rows);
    return gate.promise;
  });
  writer.note(progress(1));
  await clock.advance(50);
  writer.forget(progress(1));
  gate.reject(new Error("no connection"));
  await clock.advance(2 * defaultEngineLimits.progressRetryDelayMsMax);
  await writer.flush();
  expect(written).toEqual([[progress(1)]]);
});

it("flush throws when it cannot write the noted progress", async () => {
  const { writer } = setUp(() => Promise.reject(new Error("disk full")));
  writer.note(progress(1));
  await expect(writer.flush()).rejects.toThrow("disk full");
});

it("flush waits for the write in progress, so that nothing older is written after flush returns", async () => {
  const gate = createDeferred<readonly SubscriptionId[]>();
  const { clock, writer } = setUp(() => gate.promise);
  writer.note(progress(1));
  const first = writer.flush();
  await clock.settle();
  let isAnswered = false;
  const second = writer.flush().then(() => void (isAnswered = true));
  await clock.settle();
  expect(isAnswered).toBe(false);
  gate.resolve([]);
  await Promise.all([first, second]);
});

it("warns while writes have failed for five seconds, and no longer once nothing waits", async () => {
  let isAway = true;
  const { clock, writer } = setUp(async () => (isAway ? Promise.reject(new Error("away")) : []));
  writer.note(progress(1));
  await clock.advance(4_000);
  expect(writer.findWarning()).toBeUndefined();
  await clock.advance(4_000);
  expect(writer.findWarning()).toMatch(/^the progress of callbacks is not written, .*: away \(since .*Z\)$/);
  writer.forget(progress(1));
  expect(writer.findWarning()).toBeUndefined();
  writer.note(progress(2));
  await clock.advance(4_000);
  expect(writer.findWarning()).toBeUndefined();
  await clock.advance(4_000);
  expect(writer.findWarning()).toMatch(/away/);
  isAway = false;
  await clock.advance(60_000);
  expect(writer.findWarning()).toBeUndefined();
});
