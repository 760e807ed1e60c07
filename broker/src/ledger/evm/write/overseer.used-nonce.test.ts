import { type Hex, toQuantity } from "@stele/eth/node";
import { parseTransaction } from "viem";
import { expect, test } from "vitest";
import { connectionLost } from "../testing/intercepted-provider.ts";
import { SenderWorld } from "../testing/sender-world.ts";
import { TestJournal } from "../testing/writer-world.ts";

/**
 * A sender whose journal has transactions with these nonces. The chain node refuses nonces below `used`, and returns no transaction that used them. `counted`
 * returns the count that it answers.
 */
async function restartWith(
  nonces: readonly number[],
  { used = 1, counted = () => used } = {},
): Promise<{ readonly world: SenderWorld; readonly sent: ReadonlySet<Hex> }> {
  const journal = new TestJournal();
  const earlier = new SenderWorld({ journal });
  const last = Math.max(...nonces);
  await earlier.send(last + 1);
  await earlier.sender.stop(AbortSignal.abort());
  const others = Array.from({ length: last }, (_, nonce) => nonce).filter((nonce) => !nonces.includes(nonce));
  await journal.removeTransactions("", earlier.signer.address, others);
  const world = new SenderWorld({ journal });
  const sent = new Set<Hex>();
  world.readUpTo = 1;
  world.node.request = async ({ method, params = [] }) => {
    if (world.node.isAway) throw connectionLost();
    if (method === "eth_getTransactionCount") return toQuantity(counted());
    if (method === "eth_getBlockByNumber") return { transactions: [] };
    if (method !== "eth_sendRawTransaction") return null;
    const [raw] = params as readonly [Hex]; // The sender sends this.
    sent.add(raw);
    if (nonceOf(raw) < used) throw Object.assign(new Error("nonce too low"), { code: -32_000 });
    return "0x1";
  };
  await world.sender.start();
  return { world, sent };
}

const nonceOf = (raw: Hex): number => parseTransaction(raw).nonce ?? 0;
const noncesOf = (sent: ReadonlySet<Hex>): readonly number[] =>
  [...sent].map(nonceOf).toSorted((one, other) => one - other);

test("fills a gap after a transaction whose nonce an unknown transaction used", async () => {
  const { world, sent } = await restartWith([0, 3]);
  await world.clock.advance(30_000);
  expect(noncesOf(sent)).toEqual([0, 1, 2, 3]);
});

test("fills no nonce that a transaction in flight has, even if a chain node does not count it as used any more", async () => {
  let looks = 0;
  const counted = (): number => (looks++ % 3 === 0 ? 1 : 2);
  const { world, sent } = await restartWith([0, 1, 3], { used: 2, counted });
  await world.clock.advance(120_000);
  expect(noncesOf(sent)).toEqual([0, 1, 2, 3]);
});
