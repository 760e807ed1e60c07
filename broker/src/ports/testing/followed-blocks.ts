import { decodeEvents } from "@stele/wire";
import { expect } from "vitest";
import type { Address } from "../../domain/topic.ts";
import type { BlockRef, Ledger, LedgerBlock, LedgerEntry } from "../ledger.ts";

const unaborted = new AbortController().signal;

export function flat(blocks: readonly LedgerBlock[]): LedgerEntry[] {
  return blocks.flatMap((block) => block.entries);
}

/** The final block with a number; undefined for a number below 0 or beyond the head. */
export async function refOf(ledger: Ledger, number: number): Promise<BlockRef | undefined> {
  const hash = number < 0 ? undefined : await ledger.findBlockHash(number, unaborted);
  return hash === undefined ? undefined : { number, hash };
}

/** Follows until `enough` returns true for all blocks read so far. */
export async function collect(
  ledger: Ledger,
  after: number,
  enough: (blocks: readonly LedgerBlock[]) => boolean,
): Promise<LedgerBlock[]> {
  const blocks: LedgerBlock[] = [];
  const controller = new AbortController();
  for await (const step of ledger.follow(await refOf(ledger, after), controller.signal)) {
    if (step.kind === "reorganised") throw new Error("the chain removed a block");
    blocks.push(...step.blocks);
    if (enough(blocks)) break;
  }
  controller.abort();
  return blocks;
}

/** All blocks after number `after`, up to the newest final block. */
export async function collectAll(ledger: Ledger, after = -1): Promise<LedgerBlock[]> {
  const head = await ledger.finalBlockNumber(unaborted);
  return collect(ledger, after, (blocks) => (blocks.at(-1)?.number ?? -1) >= head);
}

export const contents = (entries: readonly LedgerEntry[]): string[] =>
  entries.flatMap((entry) =>
    entry.kind === "events-committed"
      ? decodeEvents(entry.events).map(({ content }) => Buffer.from(content).toString())
      : [],
  );

/** Expects that the sequences of each topic run 1, 2, 3 …, and that block numbers and log indexes ascend. */
export function expectOrdered(blocks: readonly LedgerBlock[]): void {
  const sequences = new Map<Address, number>();
  for (const [index, block] of blocks.entries()) {
    expect(block.number).toBeGreaterThan(blocks[index - 1]?.number ?? -1);
    let logIndex = -1;
    for (const entry of block.entries) {
      expect(entry.logIndex).toBeGreaterThan(logIndex);
      logIndex = entry.logIndex;
      if (entry.kind !== "events-committed" && entry.kind !== "events-malformed") continue;
      expect(entry.firstSequence).toBe((sequences.get(entry.address) ?? 0) + 1);
      sequences.set(entry.address, entry.firstSequence + entry.count - 1);
    }
  }
}
