import { expect, it } from "vitest";
import { parseGroupId } from "../domain/group-id.ts";
import type { LogFields, Logger } from "../lib/logger.ts";
import { VirtualClock } from "../ports/testing/virtual-clock.ts";
import type { GroupHealth } from "./broker.ts";
import { GroupWatch } from "./group-watch.ts";

const up: GroupHealth = { groupId: parseGroupId("1"), ready: true, reason: undefined, indexedBlock: 0 };
const down: GroupHealth = { ...up, ready: false, reason: "its chain does not answer" };

it("logs once when a group goes down and once when it is up again, and nothing until it has been up once", async () => {
  const lines: LogFields[] = [];
  const note = (message: string, fields: LogFields = {}): void => void lines.push({ message, ...fields });
  const logger: Logger = { debug: note, info: note, warn: note, error: note, child: () => logger };
  const clock = new VirtualClock();
  let health = down;
  const watch = new GroupWatch({ clock, logger, groupHealth: () => [health] });
  watch.start();
  for (const next of [down, up, up, down, down, up, up]) {
    health = next;
    await clock.advance(1_000);
  }
  watch.stop();
  health = down;
  await clock.advance(10_000);
  expect(lines).toEqual([
    { message: "group down", groupId: "1", reason: "its chain does not answer" },
    { message: "group up", groupId: "1", downMs: 2_000 },
  ]);
});

it("logs once when the transactions of a group fail although it is up, and once when they succeed again", async () => {
  const lines: LogFields[] = [];
  const note = (message: string, fields: LogFields = {}): void => void lines.push({ message, ...fields });
  const logger: Logger = { debug: note, info: note, warn: note, error: note, child: () => logger };
  const clock = new VirtualClock();
  const failing: GroupHealth = { ...up, transactionFailure: "no block has the transaction" };
  let health = up;
  const watch = new GroupWatch({ clock, logger, groupHealth: () => [health] });
  watch.start();
  for (const next of [failing, failing, down, { ...failing, transactionFailure: "another" }, up, up]) {
    health = next;
    await clock.advance(1_000);
  }
  watch.stop();
  expect(lines.filter(({ message }) => String(message).startsWith("transactions"))).toEqual([
    { message: "transactions fail", groupId: "1", reason: "no block has the transaction" },
    { message: "transactions succeed again", groupId: "1", failedMs: 4_000 },
  ]);
});
