import { expect, it } from "vitest";
import { BoundedLog } from "./bounded-log.ts";

it("leaves out lines beyond the allowance, and says in the next line how many", () => {
  const lines: unknown[] = [];
  let now = 0;
  const note = (message: string, fields?: unknown): void => void lines.push([message, fields]);
  const log = new BoundedLog({
    logger: { info: note, warn: note },
    clock: { monotonic: () => now },
    lines: { atOnce: 2, perSecond: 1 },
  });
  for (let n = 1; n <= 5; n += 1) log.info("ended", { n });
  now += 1000;
  for (let n = 6; n <= 8; n += 1) log.warn("refused", { n });
  now += 500;
  log.info("ended", { n: 9 });
  now += 500;
  log.info("ended", { n: 10 });
  expect(lines).toEqual([
    ["ended", { n: 1 }],
    ["ended", { n: 2 }],
    ["refused", { n: 6, omitted: 3 }],
    ["ended", { n: 10, omitted: 3 }],
  ]);
});
