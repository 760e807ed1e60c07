import { parseTransaction } from "viem";
import { expect, it } from "vitest";
import { createDeferred } from "../../../lib/deferred.ts";
import { connectionLost } from "../testing/intercepted-provider.ts";
import { SenderWorld } from "../testing/sender-world.ts";
import { hashOf, TestJournal } from "../testing/writer-world.ts";
import { noOp } from "./transaction-state.ts";

const deadlineMs = 30_000;

it("once the callers have timed out, names the oldest transaction that no block has, until its block is final", async () => {
  const { node, clock, sender, ...world } = await startWorld();
  await clock.advance(deadlineMs - 100);
  expect(sender.trouble.find()).toBeUndefined();
  await clock.advance(10_000);
  expect(sender.trouble.find()).toMatch(
    /^no block has the transaction with nonce 0 \(since .*Z\), so publishes time out: check the chain$/,
  );
  node.includeMax = 1;
  node.pool.clear(); // The sender sends it again.
  await clock.advance(10_000);
  expect(sender.trouble.find()).toMatch(
    /^block 1, with the transaction of nonce 0, is not final, or its receipt is missing \(since /,
  );
  world.setReadUpTo(1);
  sender.onRound({ logs: [] });
  await clock.advance(10_000);
  expect(sender.trouble.find()).toBeUndefined();
});

it("names an old transaction that a reorg removed only after it has waited for a block for as long again", async () => {
  const world = new SenderWorld({ deadlineMs, journal: new TestJournal() });
  const { node, clock, sender } = world;
  node.includeMax = 1;
  world.readUpTo = 1;
  await world.send(1, { logsExpected: undefined });
  await world.timeUntil(() => sender.unfinished === 0);
  await clock.advance(10 * deadlineMs);
  node.included.clear();
  node.includeMax = 0;
  sender.onReorganised(0);
  await clock.advance(deadlineMs - 100);
  expect([sender.unfinished, sender.trouble.find()]).toEqual([1, undefined]);
  await clock.advance(100);
  expect(sender.trouble.find()).toMatch(/^no block has the transaction with nonce 0 /);
});

it("names a refusal that an operator has to remedy, until the endpoint accepts a transaction", async () => {
  const world = new SenderWorld({ deadlineMs });
  const { node, clock, sender } = world;
  node.refusal = new Error("insufficient funds for gas * price + value");
  await world.send(1);
  await clock.advance(10 * deadlineMs);
  expect(sender.unfinished).toBe(0);
  expect(sender.trouble.find()).toMatch(
    /^the chain refuses transactions \(since .*Z\): eth_sendRawTransaction: insufficient funds for gas .*Give the signer's account a balance/,
  );
  node.refusal = undefined;
  await world.send(1);
  expect(sender.trouble.find()).toBeUndefined();
});

it.each([
  ["without a known remedy", -32_007, "Sender account not authorized to send transactions"],
  ["of a limit that is not one of block ranges", -32_005, "limit exceeded"],
  ["of a nonce that leaves a gap", -32_000, "nonce gap"],
  ["of a method that it lacks", -32_601, "the method eth_sendRawTransaction does not exist/is not available"],
])("names a refusal %s, until the endpoint accepts a transaction", async (_, code, message) => {
  const world = new SenderWorld({ deadlineMs });
  const { node, clock, sender } = world;
  node.onSend = () => {
    throw Object.assign(new Error(message), { code });
  };
  await world.send(1);
  await clock.advance(deadlineMs);
  const named = `: ${message}. Check whether the endpoint takes transactions of this account`;
  expect(sender.trouble.find()).toContain(named);
  node.onSend = () => {};
  await world.send(1);
  expect(sender.trouble.find()).toBeUndefined();
});

it("names why the chain refuses a transaction that it lost and that blocks all later ones", async () => {
  const { node, clock, sender } = await startWorld();
  node.pool.clear();
  node.refusal = new Error("insufficient funds for gas * price + value");
  await clock.advance(2 * deadlineMs);
  expect(sender.trouble.find()).toMatch(
    /^no block has the transaction with nonce 0 \(since .*Z\), .*: eth_sendRawTransaction: insufficient funds for gas .*Give the signer's account a balance/,
  );
});

it.each([
  [-32_000, "DUPLICATE_TRANSACTION"],
  [-32_000, "nonce too low"],
  [-32_000, "nonce too high"],
  [-32_601, "the method eth_sendRawTransaction does not exist/is not available"],
])("names no refusal without a remedy of a transaction that the endpoint has: %i %s", async (code, message) => {
  const { node, clock, sender } = await startWorld();
  node.onSend = () => {
    throw Object.assign(new Error(message), { code });
  };
  const { request } = node;
  // One of several chain nodes behind the endpoint knows no transaction of the pool.
  node.request = async (call) => (call.method === "eth_getTransactionByHash" ? null : request.call(node, call));
  await clock.advance(2 * deadlineMs);
  expect(node.sends).toBeGreaterThan(1);
  expect(sender.trouble.find()).toMatch(/^no block has the transaction with nonce 0 .*: check the chain$/);
});

it("names no refusal of a nonce if the fate of its transaction is unknown", async () => {
  const world = new SenderWorld({ deadlineMs });
  const { node, clock, sender } = world;
  node.onSend = () => {
    node.onSend = () => {
      throw Object.assign(new Error("nonce too high"), { code: -32_000 });
    };
    throw connectionLost();
  };
  await world.send(1);
  await clock.advance(2 * deadlineMs);
  expect(node.sends).toBeGreaterThan(1);
  expect(sender.trouble.find()).toMatch(/^no block has the transaction with nonce 0 .*: check the chain$/);
});

it("names the refusal of a no-op that fills a nonce before a transaction that the endpoint has", async () => {
  const world = new SenderWorld({ deadlineMs });
  const { node, clock, sender } = world;
  node.onSend = (raw) => {
    if (parseTransaction(raw).nonce === 0) throw Object.assign(new Error("insufficient funds"), { code: -32_000 });
  };
  const second = createDeferred<void>();
  let sends = 0;
  node.before = async (method) => {
    if (method === "eth_sendRawTransaction" && sends++ === 0) await second.promise;
  };
  await world.send(2);
  second.resolve();
  await clock.advance(2 * deadlineMs);
  expect(node.pool.size).toBe(1);
  expect(sender.trouble.find()).toMatch(/nonce 0 \(since .*insufficient funds.*Give the signer's account a balance/);
});

it("names a full pool as the reason of a rejection, until the endpoint accepts a transaction", async () => {
  const world = new SenderWorld({ deadlineMs });
  const { node, clock, sender, signer } = world;
  node.refusal = new Error("txpool is full");
  const request = { ...noOp(signer.address), gas: 50_000 };
  const rejected = expect(sender.send(request, new AbortController().signal)).rejects.toMatchObject({
    code: 200205,
    hints: [expect.stringContaining("transaction pool is full")],
  });
  await clock.advance(10_000);
  await rejected;
  expect(sender.trouble.find()).toMatch(/^the chain refuses transactions \(since .*Z\): txpool is full/);
  node.refusal = undefined;
  await world.send(1);
  expect(sender.trouble.find()).toBeUndefined();
});

it("names a full pool, but not as the reason why a transaction in that pool waits", async () => {
  const world = new SenderWorld({ deadlineMs });
  const { node, clock, sender } = world;
  await world.send(1, { logsExpected: undefined });
  node.refusal = new Error("txpool is full");
  await world.send(1);
  await clock.advance(20_000);
  expect(node.sends).toBeGreaterThan(10);
  expect(sender.trouble.find()).toMatch(/^the chain refuses transactions \(since .*Z\): txpool is full/);
  await clock.advance(deadlineMs);
  expect(sender.trouble.find()).toMatch(/^no block has the transaction with nonce 0 \(since .*: check the chain$/);
  const [raw = "0x"] = node.pool;
  node.pool.clear();
  node.included.add(hashOf(raw));
  world.readUpTo = 1;
  await clock.advance(10_000);
  expect(sender.trouble.find()).toBeUndefined();
});

it("answers with the outage, not with a full pool, once the endpoint is down", async () => {
  const world = new SenderWorld({ deadlineMs });
  const { node, clock, sender, signer } = world;
  node.refusal = new Error("txpool is full");
  await world.send(1);
  await clock.advance(10_000);
  node.isAway = true;
  const request = { ...noOp(signer.address), gas: 50_000 };
  const rejected = expect(sender.send(request, new AbortController().signal)).rejects.toMatchObject({
    code: 200205,
    hints: [],
  });
  await clock.advance(10_000);
  await rejected;
});

it("reports why the pool refuses the no-op that replaces a transaction over the block gas limit", async () => {
  const world = new SenderWorld({ deadlineMs });
  const { node, clock, sender } = world;
  node.onSend = (raw) => {
    if (parseTransaction(raw).data === undefined)
      throw Object.assign(new Error("replacement transaction underpriced"), { code: -32_000 });
  };
  await world.send(1, { data: new Uint8Array(100), gas: 900_000 });
  world.blockGas = 500_000;
  await clock.advance(2 * deadlineMs);
  expect(sender.trouble.find()).toMatch(/nonce 0 .*: replacement transaction underpriced.*fees and feeMaxGwei/);
});

it("names an unknown refusal for only five minutes: it may concern a single transaction", async () => {
  const world = new SenderWorld({ deadlineMs });
  const { node, clock, sender } = world;
  node.refusal = new Error("odd");
  await world.send(1);
  await clock.advance(299_000);
  expect(sender.trouble.find()).toContain("odd. Check");
  await clock.advance(1_000);
  expect(sender.trouble.find()).toBeUndefined();
});

it.each(["oversized data", "execution reverted"])(
  "names no refusal that concerns only one transaction: %s",
  async (words) => {
    const world = new SenderWorld({ deadlineMs });
    world.node.refusal = new Error(words);
    await world.send(1);
    await world.clock.advance(1000);
    expect(world.sender.trouble.find()).toBeUndefined();
    await world.clock.advance(10 * deadlineMs);
    expect(world.sender.trouble.find()).toBeUndefined();
  },
);

/** A sender with one transaction, which waits in the pool. */
async function startWorld() {
  const world = new SenderWorld({ deadlineMs });
  await world.send(1, { logsExpected: undefined });
  const setReadUpTo = (block: number): void => void (world.readUpTo = block);
  return { node: world.node, clock: world.clock, sender: world.sender, setReadUpTo };
}
