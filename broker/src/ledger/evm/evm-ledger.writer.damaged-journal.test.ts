import { Signer } from "@stele/eth/node";
import { afterEach, expect, test } from "vitest";
import type { JournalEntry } from "../../ports/journal.ts";
import { testKey } from "./testing/evm-harness.ts";
import { WriterWorld } from "./testing/writer-world.ts";

let world: WriterWorld;
afterEach(async () => {
  await world.stop();
});

/** The entry with its newest version changed. */
function withBytes(entry: JournalEntry, change: (raw: Uint8Array) => Uint8Array): JournalEntry {
  const [newest, ...older] = entry.variants;
  return { ...entry, variants: newest === undefined ? [] : [{ ...newest, raw: change(newest.raw) }, ...older] };
}

function flipped(raw: Uint8Array, at: number): Uint8Array {
  return raw.map((byte, index) => (index === at ? byte ^ 1 : byte));
}

/** Damages the newest entry of the journal. Returns the undamaged entry and the signer's address. */
async function damageNewest(damage: (entry: JournalEntry) => JournalEntry) {
  const { address } = new Signer(world.privateKey);
  const newest = (await world.journal.listTransactions("1", address)).at(-1);
  if (newest === undefined) throw new Error("the journal is empty");
  await world.journal.removeTransactions("1", address, [newest.nonce]);
  await world.journal.recordTransactions([damage(newest)]);
  return { address, newest };
}

test.each<[string, (entry: JournalEntry) => JournalEntry]>([
  ["in its nonce", (entry) => ({ ...entry, nonce: entry.nonce ^ 64 })],
  ["at the beginning of its transaction", (entry) => withBytes(entry, (raw) => flipped(raw, 1))],
  ["in the calldata of its transaction", (entry) => withBytes(entry, (raw) => flipped(raw, 100))],
  ["in the signature of its transaction", (entry) => withBytes(entry, (raw) => flipped(raw, raw.length - 5))],
  [
    "in a hash",
    (entry) => ({ ...entry, variants: entry.variants.map((one) => ({ ...one, hash: `0x${"ab".repeat(32)}` })) }),
  ],
  ["and its transaction is gone", (entry) => ({ ...entry, variants: [] })],
])("a restarted ledger commits events even if the newest entry of its journal is damaged %s", async (_, damage) => {
  world = await WriterWorld.start();
  const first = await world.createFirstWriter();
  await first.append("a");
  await first.abandon();
  const { address, newest } = await damageNewest(damage);
  const second = await world.createWriter();
  expect(await second.append("b", AbortSignal.timeout(5_000))).toMatchObject({ status: "committed", firstSequence: 2 });
  expect(await second.append("c", AbortSignal.timeout(5_000))).toMatchObject({ status: "committed", firstSequence: 3 });
  await second.ledger.stop(AbortSignal.abort());
  const nonces = (await world.journal.listTransactions("1", address)).map(({ nonce }) => nonce);
  expect(nonces.filter((nonce) => nonce >= (newest.nonce ^ 64))).toEqual([]);
});

test("a ledger knows that another signer's transactions are settled even if the nonce of one is damaged in the journal", async () => {
  world = await WriterWorld.start();
  const first = await world.createFirstWriter();
  await first.append("a");
  await first.abandon();
  const { address } = await damageNewest((entry) => ({ ...entry, nonce: entry.nonce ^ 64 }));
  const privateKey = testKey("other");
  await world.fund(privateKey);
  const second = await world.createWriter({ privateKey, registry: world.registryAddress });
  expect(await second.ledger.settled(address, AbortSignal.timeout(5_000))).toBeGreaterThan(0);
  await second.ledger.stop(AbortSignal.abort());
});
