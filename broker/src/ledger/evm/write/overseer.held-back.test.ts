import { parseTransaction } from "viem";
import { expect, test } from "vitest";
import { createDeferred } from "../../../lib/deferred.ts";
import { SenderWorld } from "../testing/sender-world.ts";
import { TestJournal } from "../testing/writer-world.ts";

const longMs = 600_000;
const blockGas = 1_000_000;

/** Gas, price and data of each version in the pool. */
function versionsOf({
  node,
}: SenderWorld): readonly { readonly gas: number; readonly price: number; readonly data: string }[] {
  return [...node.pool].map((raw) => {
    const { gas = 0n, gasPrice = 0n, maxFeePerGas = gasPrice, data = "0x" } = parseTransaction(raw);
    return { gas: Number(gas), price: Number(maxFeePerGas), data };
  });
}

test.each(["zero", "legacy"] as const)(
  "signs a third version of a transaction that the pool holds back twice, and no fourth, fees %s",
  async (fees) => {
    const world = new SenderWorld({ fees });
    world.node.executable = () => (world.node.pool.size > 2 ? 1 : 0);
    await world.send(1);
    expect(await world.timeUntil(() => world.node.pool.size === 3)).toBeLessThan(60_000);
    await world.clock.advance(longMs);
    expect(world.node.pool.size).toBe(3);
  },
);

test("signs at most three versions of the first of three transactions if the chain node never counts it as executable", async () => {
  const world = new SenderWorld({ fees: "legacy" });
  world.node.executable = () => 0;
  await world.send(3);
  await world.clock.advance(longMs);
  expect(world.node.pool.size).toBe(5);
});

test("does not sign again a transaction that the chain node counts as executable", async () => {
  const world = new SenderWorld({ fees: "legacy" });
  await world.send(3);
  await world.clock.advance(longMs);
  expect(world.node.pool.size).toBe(3);
});

test("signs another version of a held-back transaction even if the previous transaction is in a block that is not final", async () => {
  const world = new SenderWorld();
  world.node.includeMax = 1;
  world.node.executable = () => (world.node.pool.size > 1 ? 1 : 0);
  await world.send(2);
  expect(await world.timeUntil(() => world.node.pool.size === 2)).toBeLessThan(20_000);
});

test("signs only one further version if checks of a slow endpoint overlap", async () => {
  const world = new SenderWorld({ fees: "legacy" });
  world.node.executable = () => (world.node.pool.size > 1 ? 1 : 0);
  world.node.before = async () => new Promise((resolve) => void world.clock.after(4000, resolve));
  await world.send(1);
  await world.clock.advance(longMs);
  expect(world.node.pool.size).toBe(2);
});

test("never raises the gas of a transaction that has the gas of a whole block, and does not give it up", async () => {
  const world = new SenderWorld({ deadlineMs: 2000 });
  world.node.executable = () => 0;
  await world.send(1, { gas: blockGas, data: new Uint8Array(100).fill(7) });
  await world.clock.advance(longMs);
  const versions = versionsOf(world);
  expect(versions.length).toBeGreaterThan(1);
  for (const { gas, data } of versions) {
    expect(gas).toBeLessThanOrEqual(blockGas);
    expect(data).toHaveLength(2 + 200);
  }
});

test("resends the older version, which the chain node accepted and lost, after it refused the newer version", async () => {
  const world = new SenderWorld({ fees: "legacy", deadlineMs: 2000 });
  const { node, clock } = world;
  node.executable = () => 0;
  await world.send(1, { data: new Uint8Array(100).fill(7) });
  node.refusal = new Error("exceeds block gas limit");
  await clock.advance(longMs);
  node.refusal = undefined;
  const [taken] = node.pool;
  node.pool.clear();
  expect(await world.timeUntil(() => node.pool.size > 0)).toBeLessThan(20_000);
  expect([...node.pool][0]).toBe(taken);
});

test.each(["zero", "legacy"] as const)(
  "signs nothing and writes nothing to the journal after the stop, fees %s",
  async (fees) => {
    const journal = new TestJournal();
    const world = new SenderWorld({ fees, journal });
    const { node, clock, sender, signer } = world;
    const asked = createDeferred<void>();
    const answer = createDeferred<void>();
    node.executable = () => 0;
    node.before = async (method) => {
      if (method !== "eth_getTransactionByHash") return;
      asked.resolve();
      await answer.promise;
    };
    await world.send(1);
    await clock.advance(12_000);
    await asked.promise;
    await sender.stop(AbortSignal.abort());
    answer.resolve();
    await clock.advance(1000);
    expect((await journal.listTransactions("", signer.address))[0]?.variants).toHaveLength(1);
    expect(node.pool.size).toBe(1);
  },
);

test("signs no further version of a transaction that loses its nonce while the gas price is read", async () => {
  const world = new SenderWorld({ fees: "legacy" });
  const { node, clock, sender, signer } = world;
  const asked = createDeferred<void>();
  const price = createDeferred<void>();
  const count = createDeferred<void>();
  let counts = 0;
  node.executable = () => 0;
  node.before = async (method) => {
    if (method === "eth_gasPrice") {
      asked.resolve();
      await price.promise;
    } else if (method === "eth_getTransactionCount" && node.foreign !== undefined && counts++ > 0) await count.promise;
  };
  await world.send(1, { logsExpected: undefined });
  await clock.advance(12_000);
  await asked.promise;
  node.foreign = { hash: `0x${"ff".repeat(32)}`, from: signer.address, nonce: "0x0" };
  sender.onRound({ logs: [] });
  await clock.settle();
  price.resolve();
  await clock.advance(2000);
  count.resolve();
  await clock.advance(2000);
  expect(nonces(world)).toEqual([0, 1]);
});

function nonces({ node }: SenderWorld): readonly number[] {
  return [...node.pool].map((raw) => parseTransaction(raw).nonce ?? 0);
}
