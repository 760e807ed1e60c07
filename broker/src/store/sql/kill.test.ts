import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, describe, expect, it } from "vitest";
import { blockNumberMax, endOfBlock, positionZero, toPosition } from "../../domain/position.ts";
import { alpha, group, subscriptionOf } from "../../ports/store-examples.contract.ts";
import { createSqlStore } from "./sql-store.ts";

// The child runs the built code, as the product does: `npm test` builds first.
const builtStore = new URL("../../../dist/store/sql/sql-store.js", import.meta.url).href;

/** A program that writes blocks after the store's head. It prints the number of each block that it applied, and of each subscription that it inserted. */
const writer = `
const { createSqlStore } = await import(process.argv[1]);
const { writeSync } = await import("node:fs");
const template = JSON.parse(process.argv[3]);
const store = createSqlStore({ file: process.argv[2] });
await store.start();
const address = "0x" + "11".repeat(20);
const head = (await store.findHead("1")) ?? { blockNumber: 0 };
for (let number = head.blockNumber + 1; ; number += 1) {
  const opened = number === 1
    ? [{ name: "alpha", address, sender: address, createdTimestamp: 1, sequence: 0, blockNumber: 0, closed: false }]
    : [];
  const place = { firstSequence: (number - 1) * 10 + 1, firstPosition: number * 2 ** 20, count: 10, blockNumber: number };
  const hash = "0x" + number.toString(16).padStart(64, "0");
  const batches = [{ topic: "alpha", ...place, transactionHash: hash, logIndex: 0, publisher: address, events: new Uint8Array(20_000).fill(number % 256) }];
  await store.applyBlocks("1", [{ number, hash, opened, closed: [], batches, skippedSequences: [] }]);
  writeSync(1, "block " + number + "\\n");
  if (number % 5 !== 0) continue;
  const id = template.id.slice(0, -12) + number.toString(16).padStart(12, "0");
  await store.insertSubscription({ ...template, id, createdAt: number }, 0);
  await store.saveProgress([{ id, epoch: 0, cursor: number * 2 ** 20, notifiedCount: number, notifiedAt: number, failedAttempts: 0, failedMs: 0, failingSince: 0, retryAt: 0 }]);
  writeSync(1, "subscription " + number + "\\n");
}
`;

describe("a store whose process is killed while it writes", () => {
  const folder = mkdtempSync(join(tmpdir(), "stele-kill-"));
  const file = join(folder, "store.db");
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const reportedSubscriptions: number[] = [];

  it.each([1, 3, 40, 5, 6, 300, 90, 11])(
    "keeps every write that it confirmed before a kill after %i confirmations",
    async (answers) => {
      const reportedBlock = await killAfter(answers);
      const store = createSqlStore({ file });
      await store.start();
      try {
        const head = (await store.findHead(group))?.blockNumber ?? 0;
        expect(head).toBeGreaterThanOrEqual(reportedBlock);
        expect(await store.findTopic(group, alpha)).toMatchObject({ sequence: head * 10, blockNumber: head });
        expect(await store.countEventsAfter(group, alpha, positionZero)).toBe(head * 10);
        const range = { after: positionZero, upTo: endOfBlock(blockNumberMax), topic: alpha };
        const batches = await store.readBatches(group, { ...range, batchesMax: 1_000_000, bytesMax: 1 << 30 });
        expect(batches.map((batch) => batch.firstSequence)).toEqual(batches.map((_, index) => index * 10 + 1));
        expect(batches).toHaveLength(head);
        const last = batches.at(-1);
        expect(last?.events.every((byte) => byte === head % 256)).toBe(true);
        const subscriptions = await store.listSubscriptions();
        const cursors = new Map(subscriptions.map(({ createdAt, cursor }) => [createdAt, cursor]));
        expect(reportedSubscriptions.map((number) => cursors.get(number))).toEqual(
          reportedSubscriptions.map((number) => toPosition(number, 0)),
        );
      } finally {
        await store.stop();
      }
    },
  );

  /** Kills the writer after `answers` confirmations. Returns the last block that it confirmed, and collects the subscriptions. */
  async function killAfter(answers: number): Promise<number> {
    const template = JSON.stringify(subscriptionOf(0, { cursor: positionZero }));
    const child = spawn(process.execPath, ["--input-type=module", "-e", writer, builtStore, file, template], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const exited = new Promise((resolve) => child.once("exit", (_, signal) => resolve(signal)));
    let reportedBlock = 0;
    let lines = 0;
    for await (const line of createInterface({ input: child.stdout })) {
      const [kind, number] = line.split(" ");
      if (kind === "block") reportedBlock = Number(number);
      if (kind === "subscription") reportedSubscriptions.push(Number(number));
      lines += 1;
      if (lines === answers) child.kill("SIGKILL");
    }
    expect(await exited).toBe("SIGKILL");
    return reportedBlock;
  }
});
