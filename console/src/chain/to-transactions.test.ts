import { expect, test } from "vitest";
import { toTransactions } from "./to-transactions.ts";

const batch = (transactionHash: string, logIndex: number) => ({ transactionHash, publisher: "0xp", logIndex });

test("toTransactions groups the batches of a block by transaction, in order", () => {
  const batches = [batch("0xa", 0), batch("0xa", 1), batch("0xb", 2)];
  expect(toTransactions(batches)).toEqual([
    { hash: "0xa", publisher: "0xp", batches: batches.slice(0, 2) },
    { hash: "0xb", publisher: "0xp", batches: batches.slice(2) },
  ]);
});
