import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { silentLogger } from "../logger.ts";
import { DiskWatch } from "./disk-watch.ts";

const mebibyte = 2 ** 20;

/** A clock with one timer. The test runs it by hand. */
function createClock() {
  let due: (() => void) | undefined;
  return {
    after: (_delayMs: number, action: () => void) => {
      due = action;
      return () => void (due = undefined);
    },
    async advance(): Promise<void> {
      due?.();
      await turn();
    },
  };
}

it("warns once below the limit, in the log and in health, and says when there is enough space again", async () => {
  const lines: string[] = [];
  const note = (message: string): void => void lines.push(message);
  const clock = createClock();
  let free: number | undefined = 300 * mebibyte;
  const probe = async (): Promise<number> => {
    if (free === undefined) throw new Error("unknown");
    return free;
  };
  const logger = { ...silentLogger, info: note, warn: note };
  const watch = new DiskWatch({ folder: "/data", warnBytes: 200 * mebibyte, clock, logger, probe });
  await watch.start();
  expect([watch.freeBytes, watch.warning]).toEqual([free, undefined]);
  for (const next of [199, 150]) {
    free = next * mebibyte;
    await clock.advance();
    expect(watch.warning).toMatch(`/data has ${next} MiB left`);
  }
  free = 200 * mebibyte;
  await clock.advance();
  expect(watch.warning).toBeUndefined();
  free = undefined;
  await clock.advance();
  expect([watch.freeBytes, watch.warning]).toEqual([undefined, undefined]);
  watch.stop();
  free = 0;
  await clock.advance();
  expect(watch.warning).toBeUndefined();
  expect(lines).toEqual(["disk nearly full", "disk has enough free space again"]);
});

it("reads the free space of a real disk", async () => {
  const watch = new DiskWatch({ folder: "/", warnBytes: 0, clock: createClock(), logger: silentLogger });
  await watch.start();
  watch.stop();
  expect(watch.freeBytes).toBeGreaterThan(0);
});
