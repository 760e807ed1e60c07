import { BrokerError } from "@stele/wire";
import { expect, test } from "vitest";
import { silentLogger } from "../../lib/logger.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { FeePolicy } from "./fee-policy.ts";
import { toQuantity } from "./hex.ts";
import { Signer } from "./native-crypto.ts";
import { transferOfNothing } from "./pending-transaction.ts";
import { type EvmProvider, Rpc } from "./rpc.ts";
import { connectionLost } from "./testing/intercepted-provider.ts";
import { testKey } from "./testing/evm-harness.ts";
import { TransactionSender } from "./transaction-sender.ts";

const never = new AbortController().signal;
/** Between two of them: each has a time of its own at which it is looked for. */
const staggerMs = 300;

/** A node that makes no blocks: what is sent stays in its pool. */
class Pool implements EvmProvider {
  readonly raws = new Set<unknown>();
  isAway = false;

  async request({ method, params = [] }: Parameters<EvmProvider["request"]>[0]): Promise<unknown> {
    if (this.isAway) throw connectionLost();
    if (method === "eth_getTransactionReceipt") return null;
    if (method === "eth_getTransactionCount" && params[1] === "pending") return toQuantity(this.raws.size);
    if (method !== "eth_sendRawTransaction") return "0x0";
    if (this.raws.has(params[0])) throw Object.assign(new Error("already known"), { code: -32_000 });
    this.raws.add(params[0]);
    return "0x";
  }
}

/** Transactions that have waited in the pool for so long that each is looked for every 8 s. */
async function startWithWaiting(transactions: number): Promise<{ readonly pool: Pool; readonly clock: VirtualClock }> {
  const pool = new Pool();
  const clock = new VirtualClock();
  const rpc = new Rpc(pool);
  const signer = new Signer(testKey("forgotten"));
  const sender = new TransactionSender({
    rpc,
    clock,
    logger: silentLogger,
    signer,
    chainId: 1,
    registry: signer.address,
    fees: new FeePolicy(rpc, { mode: "zero", max: undefined }),
    journal: undefined,
    deadlineMs: 3_600_000,
    feeBumpAfterMs: 3_600_000,
    head: () => 0,
    readUpTo: () => 0,
    isRead: async () => true,
    onSent: () => {},
    onOverdue: () => {},
    estimateGas: async ({ gas }) => gas,
    unreachable: () => new BrokerError("chainUnreachable"),
    isKept: () => false,
  });
  for (let count = 0; count < transactions; count += 1) {
    void sender.send(transferOfNothing(signer.address), never);
    await clock.advance(staggerMs);
  }
  await clock.advance(30_000);
  expect(pool.raws.size).toBe(transactions);
  return { pool, clock };
}

test("what a node has forgotten is sent again together, not each at its own time", async () => {
  const { pool, clock } = await startWithWaiting(20);
  pool.raws.clear();
  await clock.advance(1500);
  expect(pool.raws.size).toBe(20);
});

test.each([1, 20])(
  "%i that a node has forgotten while it was away are sent again soon after it is back",
  async (count) => {
    const { pool, clock } = await startWithWaiting(count);
    pool.isAway = true;
    pool.raws.clear();
    await clock.advance(30_000);
    pool.isAway = false;
    await clock.advance(2000);
    expect(pool.raws.size).toBe(count);
  },
);
