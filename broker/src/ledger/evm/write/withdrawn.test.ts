import { expect, test } from "vitest";
import { createDeferred } from "../../../lib/deferred.ts";
import type { JournalEntry } from "../../../ports/journal.ts";
import { SenderWorld } from "../testing/sender-world.ts";
import { TestJournal } from "../testing/writer-world.ts";

class FailingJournal extends TestJournal {
  isFailing = false;

  override async recordTransactions(entries: readonly JournalEntry[]): Promise<void> {
    if (this.isFailing) throw new Error("the database is away");
    return super.recordTransactions(entries);
  }
}

/** The node refuses the first of two transactions after it took the second, so a no-op must take the nonce of the first. */
async function refuseFirst(journal: FailingJournal, whileRefused: () => void): Promise<unknown> {
  const world = new SenderWorld({ journal });
  const { node, clock, sender } = world;
  const answer = createDeferred<void>();
  node.before = async (method) => {
    if (method !== "eth_sendRawTransaction" || node.pool.size > 0) return;
    node.before = async () => {};
    await answer.promise;
    node.refusal = new Error("insufficient funds for gas");
  };
  const request = { to: world.signer.address, data: new Uint8Array(100), gas: 50_000, logsExpected: 1 };
  const first = sender.send(request, new AbortController().signal).catch((error: unknown) => error);
  await clock.settle();
  await world.send(1, { data: new Uint8Array(100) });
  expect(node.pool.size).toBe(1);
  whileRefused();
  answer.resolve();
  await clock.advance(5000);
  return first;
}

test("refuses a transaction for good once a no-op took its place in the journal", async () => {
  const journal = new FailingJournal();
  expect(await refuseFirst(journal, () => {})).toMatchObject({ code: 200202 });
});

test("answers that the outcome is unknown while the journal still has the withdrawn transaction", async () => {
  const journal = new FailingJournal();
  const fail = (): void => {
    journal.isFailing = true;
  };
  expect(await refuseFirst(journal, fail)).toMatchObject({ code: 200201 });
});
