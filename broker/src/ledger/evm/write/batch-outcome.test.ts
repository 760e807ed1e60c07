import { expect, test } from "vitest";
import { toOutcome } from "./batch-outcome.ts";
import type { ContractLog } from "../read/parse-log.ts";

const place = {
  address: `0x${"a".repeat(40)}`,
  blockNumber: 7,
  blockHash: `0x${"b".repeat(64)}`,
  transactionHash: `0x${"c".repeat(64)}`,
  logIndex: 0,
} as const;

function published(firstSequence: number, count: number): ContractLog {
  const batch = { firstSequence, sender: place.address, count, eventsRoot: "0x", events: Buffer.of() } as const;
  return { ...place, kind: "events-published", ...batch };
}

const { blockNumber, blockHash, transactionHash } = place;
const committed = { status: "committed", blockNumber, blockHash, transactionHash } as const;

test.each([
  [1, 1, { ...committed, firstSequence: 1 }],
  [2 ** 53 - 2, 2, { ...committed, firstSequence: 2 ** 53 - 2 }],
  [2 ** 53 - 1, 2, { status: "rejected", reason: "sequence-spent" }],
  [2 ** 60, 1, { status: "rejected", reason: "sequence-spent" }],
])(
  "commits a batch up to sequence 2^53 - 1 and rejects one beyond: first sequence %d, %d events",
  (firstSequence, count, outcome) => {
    expect(toOutcome(published(firstSequence, count), 7)).toEqual(outcome);
  },
);

test("returns the contract's reason for a rejected batch", () => {
  const log: ContractLog = { ...place, kind: "batch-rejected", reason: "closed-topic" };
  expect(toOutcome(log, 7)).toEqual({ status: "rejected", reason: "closed-topic" });
});
