import { parseTransaction } from "viem";
import { expect, test } from "vitest";
import { createDeferred } from "../../../lib/deferred.ts";
import type { JournalEntry } from "../../../ports/journal.ts";
import { SenderWorld } from "../testing/sender-world.ts";
import { hashOf, TestJournal } from "../testing/writer-world.ts";

const data = new Uint8Array(100).fill(7);

/** A journal whose reads wait for a promise of the test. */
class SlowJournal extends TestJournal {
  before: () => Promise<void> = async () => {};

  override async listTransactions(
    ...[group, sender]: Parameters<TestJournal["listTransactions"]>
  ): Promise<readonly JournalEntry[]> {
    await this.before();
    return super.listTransactions(group, sender);
  }
}

/** A reorg removes the final block of one transaction while a later transaction waits in the pool. */
async function loseFinalBlock(journal: SlowJournal, whileReorganised: (world: SenderWorld) => Promise<void>) {
  const world = new SenderWorld({ journal });
  const { node, sender } = world;
  node.includeMax = 1;
  world.readUpTo = 1;
  await world.send(1, { data, logsExpected: undefined });
  await world.timeUntil(() => sender.unfinished === 0);
  await world.send(1, { data });
  expect(node.pool.size).toBe(1);
  node.included.clear();
  node.includeMax = 0;
  sender.onReorganised(0);
  await whileReorganised(world);
  return world;
}

/** The calldata of the transactions in the chain node's pool, by nonce. */
const poolOf = ({ node }: SenderWorld) => {
  const transactions = [...node.pool].map((raw) => parseTransaction(raw));
  return Object.fromEntries(transactions.map((one) => [one.nonce ?? 0, one.data ?? "0x"]));
};
const sent = `0x${Buffer.from(data).toString("hex")}`;

test("resends a lost final transaction, and no no-op instead of it, even if the journal answers late", async () => {
  const journal = new SlowJournal();
  const answer = createDeferred<void>();
  journal.before = () => answer.promise;
  const world = await loseFinalBlock(journal, async ({ clock }) => {
    await clock.advance(30_000); // The waiting transaction is checked meanwhile, and its predecessor is missing.
    answer.resolve();
    await clock.advance(30_000);
  });
  expect(poolOf(world)).toEqual({ 0: sent, 1: sent });
  expect(await journal.listTransactions("", world.signer.address)).toHaveLength(2);
});

test("resends a lost final transaction after reads of the journal failed", async () => {
  const journal = new SlowJournal();
  let reads = 0;
  journal.before = async () => {
    reads += 1;
    if (reads < 3) throw new Error("the database is away");
  };
  const world = await loseFinalBlock(journal, ({ clock }) => clock.advance(30_000));
  expect(poolOf(world)).toEqual({ 0: sent, 1: sent });
});

test("stops reading a journal that fails", async () => {
  const journal = new SlowJournal();
  journal.before = async () => {
    throw new Error("the database is away");
  };
  const world = await loseFinalBlock(journal, ({ clock }) => clock.advance(1000));
  await world.sender.stop(AbortSignal.abort());
  await world.clock.advance(10_000);
  expect(world.clock.timers).toBe(0);
});

test("resends a lost final transaction, even if a no-op was signed with its nonce before a block included it", async () => {
  const journal = new TestJournal();
  const world = new SenderWorld({ journal, deadlineMs: 30_000 });
  const { node, clock, sender, signer } = world;
  // The chain node passes the transaction on, but answers with an error.
  node.onSend = (raw) => {
    if (parseTransaction(raw).data === sent) throw Object.assign(new Error("Internal error"), { code: -32_603 });
  };
  await world.send(1, { data });
  await clock.advance(600_000);
  const [entry] = await journal.listTransactions("", signer.address);
  const final = entry?.variants.at(-1)?.hash ?? "0x";
  expect([entry?.variants.length, poolOf(world)]).toEqual([2, { 0: "0x" }]);
  node.pool.clear();
  world.readUpTo = 1;
  const place = { blockNumber: 1, blockHash: final, transactionHash: final, logIndex: 0, address: signer.address };
  sender.onRound({ logs: [{ kind: "topic-closed", ...place }] });
  expect(sender.unfinished).toBe(0);
  node.onSend = () => {};
  sender.onReorganised(0);
  await clock.advance(30_000);
  expect(poolOf(world)).toEqual({ 0: sent });
});

test("resends a no-op that a deep reorg removed, even if the chain node refuses it three times and fails at the replaced transaction", async () => {
  const world = new SenderWorld({
    journal: new TestJournal(),
    fees: "legacy",
    deadlineMs: 30_000,
    feeBumpAfterMs: 20_000,
  });
  const { node, clock, sender, fees } = world;
  await fees.refresh();
  let refusals = 0;
  node.onSend = (raw) => {
    const { data: content, gasPrice = 0n } = parseTransaction(raw);
    if (content === sent) throw Object.assign(new Error("Internal error"), { code: -32_603 });
    refusals -= 1;
    if (refusals < 0 && gasPrice <= 1_000_000_000n) return;
    throw Object.assign(new Error("insufficient funds for gas * price + value"), { code: -32_000 });
  };
  await world.send(1, { data });
  await clock.advance(600_000);
  expect(poolOf(world)).toEqual({ 0: "0x" });
  for (const raw of node.pool) node.included.add(hashOf(raw));
  node.pool.clear();
  world.readUpTo = 1;
  await world.timeUntil(() => sender.unfinished === 0);
  node.included.clear();
  refusals = 3;
  sender.onReorganised(0);
  for (let seconds = 0; seconds < 300; seconds += 1) {
    world.head += 1;
    await clock.advance(1000);
  }
  expect(poolOf(world)).toEqual({ 0: "0x" });
});
