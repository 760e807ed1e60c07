import { setImmediate as turn } from "node:timers/promises";
import { Signer, signTransaction } from "@stele/eth/node";
import { expect, test } from "vitest";
import { defaultGroupId } from "../../../domain/group-id.ts";
import { createDeferred } from "../../../lib/deferred.ts";
import { silentLogger } from "../../../lib/logger.ts";
import type { JournalEntry } from "../../../ports/journal.ts";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { testKey } from "../testing/evm-harness.ts";
import { TestJournal } from "../testing/writer-world.ts";
import { JournalWriter } from "./journal-writer.ts";

const signer = new Signer(testKey("writer"));
const sender = signer.address;

function sign(nonce: number, gasPrice = 1n) {
  const fees = { kind: "legacy", gasPrice } as const;
  return signTransaction({ chainId: 1, nonce, fees, gas: 21_000, to: sender, data: new Uint8Array(0) }, signer);
}

/** A journal that runs a function after its next read. */
class WatchedJournal extends TestJournal {
  afterRead: () => Promise<void> = async () => {};

  override async listTransactions(group: string, account: typeof sender): Promise<readonly JournalEntry[]> {
    const entries = await super.listTransactions(group, account);
    await this.afterRead();
    return entries;
  }
}

function createWriter(journal: TestJournal): JournalWriter {
  const [groupId, clock] = [defaultGroupId, new VirtualClock()];
  return new JournalWriter({ journal, groupId, sender, clock, logger: silentLogger });
}

test("repairs a damaged entry, and keeps changes made to other entries meanwhile", async () => {
  const journal = new WatchedJournal();
  const writer = createWriter(journal);
  for (const nonce of [3, 4, 5]) await writer.record({ nonce, variants: [sign(nonce)] });
  const [removed, raised, damaged] = await journal.listTransactions(defaultGroupId, sender);
  if (removed === undefined || raised === undefined || damaged === undefined) throw new Error("not recorded");
  await journal.removeTransactions(defaultGroupId, sender, [5]);
  await journal.recordTransactions([{ ...damaged, nonce: 69 }]);
  journal.afterRead = async () => {
    await writer.remove([3]);
    await writer.record({ nonce: 4, variants: [sign(4, 2n), sign(4)] });
  };
  expect((await writer.list()).map(({ nonce }) => nonce)).toEqual([3, 4, 5]);
  journal.afterRead = async () => {};
  const kept = await journal.listTransactions(defaultGroupId, sender);
  expect(kept.map(({ nonce, variants }) => [nonce, variants.length])).toEqual([
    [4, 2],
    [5, 1],
  ]);
});

test("is idle only once a change that was made during the wait is written", async () => {
  const journal = new TestJournal();
  const begun = createDeferred<void>();
  const record = journal.recordTransactions.bind(journal);
  journal.recordTransactions = async (entries) => {
    begun.resolve();
    await turn();
    await record(entries);
  };
  const writer = createWriter(journal);
  const first = writer.record({ nonce: 3, variants: [sign(3)] });
  const idle = writer.idle();
  await begun.promise;
  const second = writer.record({ nonce: 3, variants: [sign(3, 2n), sign(3)] });
  await idle;
  const [kept] = await journal.listTransactions(defaultGroupId, sender);
  expect(kept?.variants).toHaveLength(2);
  await Promise.all([first, second]);
});

function away(): Promise<never> {
  return Promise.reject(new Error("the database is away"));
}

test("names a failed record as the reason for an unsent transaction, and never a failed removal", async () => {
  const journal = new TestJournal();
  const writer = createWriter(journal);
  await writer.record({ nonce: 3, variants: [sign(3)] });
  const { removeTransactions, recordTransactions } = journal;
  journal.removeTransactions = away;
  await expect(writer.remove([3])).rejects.toThrow();
  expect(writer.failure).toBeUndefined();
  journal.recordTransactions = away;
  await expect(writer.record({ nonce: 4, variants: [sign(4)] })).rejects.toThrow();
  journal.removeTransactions = removeTransactions;
  await writer.remove([3]);
  expect(writer.failure).toContain("the database is away");
  journal.recordTransactions = recordTransactions;
  await writer.record({ nonce: 4, variants: [sign(4)] });
  expect(writer.failure).toBeUndefined();
});
