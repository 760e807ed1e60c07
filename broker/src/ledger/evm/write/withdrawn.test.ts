import { BrokerError } from "@stele/wire";
import { parseTransaction } from "viem";
import { expect, test } from "vitest";
import { createDeferred } from "../../../lib/deferred.ts";
import type { JournalEntry } from "../../../ports/journal.ts";
import { connectionRefused } from "../testing/intercepted-provider.ts";
import { SenderWorld } from "../testing/sender-world.ts";
import { TestJournal } from "../testing/writer-world.ts";

class FailingJournal extends TestJournal {
  isFailing = false;
  /** Removals wait for this promise. */
  removal: Promise<void> = Promise.resolve();

  override async removeTransactions(...args: Parameters<TestJournal["removeTransactions"]>): Promise<void> {
    await this.removal;
    return super.removeTransactions(...args);
  }

  override async recordTransactions(entries: readonly JournalEntry[]): Promise<void> {
    if (this.isFailing) throw new Error("the database is away");
    return super.recordTransactions(entries);
  }
}

/**
 * Makes the endpoint accept the second of two transactions and refuse the first, so that a no-op must use the nonce of the first. Returns the outcome of the
 * first.
 */
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

test("refuses a transaction permanently once a no-op took its place in the journal", async () => {
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

test("withdraws a transaction once, even if its caller leaves while the journal removes it", async () => {
  const journal = new FailingJournal();
  const removal = createDeferred<void>();
  journal.removal = removal.promise;
  const world = new SenderWorld({ journal });
  const { node, clock, sender, signer } = world;
  node.refusal = new Error("insufficient funds for gas");
  const caller = new AbortController();
  const request = { to: signer.address, data: new Uint8Array(100), gas: 50_000, logsExpected: 1 };
  const refused = sender.send(request, caller.signal).catch((error: unknown) => error);
  await clock.settle();
  node.refusal = undefined;
  await world.send(1, { data: new Uint8Array(100).fill(1) }); // Takes the nonce that was given back.
  caller.abort();
  removal.resolve();
  await clock.advance(1000);
  expect(await refused).toBeInstanceOf(BrokerError);
  await world.send(1, { data: new Uint8Array(100).fill(2) });
  expect([...node.pool].map((raw) => parseTransaction(raw).nonce ?? 0)).toEqual([0, 1]);
  const entries = await journal.listTransactions("", signer.address);
  expect(entries.map(({ nonce }) => nonce)).toEqual([0, 1]);
});

test("answers at the caller's deadline even if the journal hangs while it removes a transaction", async () => {
  const journal = new FailingJournal();
  journal.removal = createDeferred<void>().promise;
  const { node, clock, sender, signer } = new SenderWorld({ journal, deadlineMs: 2000 });
  node.refusal = new Error("insufficient funds for gas");
  const request = { to: signer.address, data: new Uint8Array(100), gas: 50_000, logsExpected: 1 };
  const refused = sender.send(request, new AbortController().signal).catch((error: unknown) => error);
  await clock.advance(2000);
  expect(await Promise.race([refused, clock.settle()])).toMatchObject({ code: 200201 });
});

test.each(["Internal error", "502 Bad Gateway", "an error without a message"])(
  "answers that the outcome is unknown if the chain node reports an error after it accepted the transaction: %s",
  async (message) => {
    const { node, clock, sender, signer } = new SenderWorld({ deadlineMs: 10_000 });
    node.onSend = (raw) => {
      if (node.pool.size > 0) return;
      node.pool.add(raw);
      throw Object.assign(new Error(message), { code: -32_603 });
    };
    const request = { to: signer.address, data: new Uint8Array(100), gas: 50_000, logsExpected: 1 };
    const answer = sender.send(request, new AbortController().signal).catch((error: unknown) => error);
    await clock.advance(10_000);
    expect(await answer).toMatchObject({ code: 200201 });
    expect(node.pool.size).toBe(1);
  },
);

test("answers that the chain is unreachable if the connection is lost after another sender used the transaction's nonce", async () => {
  const { node, clock, sender, signer } = new SenderWorld();
  let isLost = false;
  node.before = async (method) => {
    if (isLost || method !== "eth_sendRawTransaction") return;
    isLost = true;
    throw Object.assign(new Error("nonce too low"), { code: -32_000 });
  };
  node.onSend = () => {
    throw connectionRefused();
  };
  const request = { to: signer.address, data: new Uint8Array(100), gas: 50_000, logsExpected: 1 };
  const answer = sender.send(request, new AbortController().signal).catch((error: unknown) => error);
  await clock.advance(8_000);
  expect(await Promise.race([answer, clock.settle()])).toMatchObject({ code: 200205 });
});

/**
 * A sender whose transaction lost its nonce, in block 0, to a transaction that the chain node does not return. `oldest`: the first block whose state the node
 * has.
 */
async function loseNonce(oldest: (readUpTo: number) => number): Promise<SenderWorld> {
  const world = new SenderWorld({ deadlineMs: 10_000 });
  const { node } = world;
  await world.send(1);
  node.pool.clear();
  const hash = `0x${"02".repeat(32)}` as const;
  node.foreign = { hash, from: `0x${"bb".repeat(20)}`, nonce: "0x0" };
  node.included.add(hash);
  const request = node.request.bind(node);
  node.request = async (call) => {
    const isTooOld = call.method === "eth_getTransactionCount" && Number(call.params?.[1]) < oldest(world.readUpTo);
    if (isTooOld) throw Object.assign(new Error("missing trie node"), { code: -32_000 });
    return request(call);
  };
  node.onSend = (raw) => {
    if (parseTransaction(raw).nonce === 0) throw Object.assign(new Error("nonce too low"), { code: -32_000 });
  };
  return world;
}

test.each([
  ["every block", () => 0],
  ["the newest final block", (readUpTo: number) => readUpTo],
])(
  "gives up a transaction whose nonce an unknown one used, once nobody waits and no reorg can undo that; the endpoint has the states of %s",
  async (_, oldest) => {
    const world = await loseNonce(oldest);
    const { clock, sender } = world;
    await clock.advance(5_000);
    world.readUpTo = 64; // Its caller waits.
    await clock.advance(4_000);
    expect(sender.unfinished).toBe(1);
    world.readUpTo = 63; // The chain node that counts may be on another branch.
    await clock.advance(20_000);
    expect(sender.unfinished).toBe(1);
    world.readUpTo = 64;
    await clock.advance(20_000);
    expect(sender.unfinished).toBe(0);
    expect(sender.trouble.find()).toBeUndefined();
  },
);

test("signs another version of a held-back transaction although an earlier nonce is unsettled, and gives that nonce up without new blocks", async () => {
  const world = await loseNonce(() => 0);
  const { node, clock, sender } = world;
  await clock.advance(5_000);
  node.executable = () => (node.pool.size > 1 ? 1 : 0);
  await world.send(1);
  await clock.advance(30_000);
  expect([...node.pool].map((raw) => parseTransaction(raw).nonce)).toEqual([1, 1]);
  expect(sender.unfinished).toBe(2);
  await clock.advance(600_000);
  expect(sender.unfinished).toBe(1);
});
