import { beforeEach, expect, it } from "vitest";
import { defaultGroupId } from "../domain/group-id.ts";
import { createMemoryLedger } from "../ledger/memory/memory-ledger.ts";
import { MemoryChain } from "../ledger/memory/memory-chain.ts";
import { createDeferred } from "../lib/deferred.ts";
import type { Ledger, LedgerBlock } from "../ports/ledger.ts";
import { VirtualClock } from "../ports/testing/virtual-clock.ts";
import { parseTopicName } from "../domain/topic-name.ts";
import { BlockTimes } from "./block-times.ts";
import { IndexProgress } from "./index-progress.ts";

let clock: VirtualClock;
let ledger: Ledger;
let progress: IndexProgress;
let times: BlockTimes;
/** Numbers of the blocks that the chain was asked for. */
let asked: number[];
let isSilent: boolean;

/** A chain of five blocks, one minute apart. */
beforeEach(async () => {
  [clock, asked, isSilent] = [new VirtualClock(), [], false];
  const chain = new MemoryChain({ clock });
  ledger = createMemoryLedger({ groupId: defaultGroupId, chain, isFinal: true, confirmations: 0 });
  await ledger.start();
  const { signal } = new AbortController();
  while (chain.head < 4) {
    await clock.advance(60_000);
    await ledger.openTopic(parseTopicName(`topic ${chain.head}`), signal);
  }
  const readBlock = ledger.readBlock.bind(ledger);
  ledger.readBlock = async (blockNumber, readSignal) => {
    asked.push(blockNumber);
    return isSilent ? new Promise(() => {}) : readBlock(blockNumber, readSignal);
  };
  progress = new IndexProgress();
  times = new BlockTimes({ ledger, clock, progress });
});

it("find does not share a read that began before a rollback, which may give the time of a removed block", async () => {
  const removed = createDeferred<LedgerBlock | undefined>();
  const readBlock = ledger.readBlock.bind(ledger);
  ledger.readBlock = () => removed.promise;
  const before = times.find(3);
  ledger.readBlock = readBlock;
  progress.rollBackTo(2);
  const after = times.find(3);
  removed.resolve(undefined);
  expect(await before).toBeUndefined();
  expect(await after).toBeTypeOf("number");
});

it("find reads a block once for concurrent calls, and again for a later call", async () => {
  const found = await Promise.all(Array.from({ length: 100 }, () => times.find(3)));
  expect(new Set(found).size).toBe(1);
  expect(asked).toEqual([3]);
  expect(await times.find(3)).toBe(found[0]);
  expect(asked).toEqual([3, 3]);
});

it("find returns undefined and findBlockAt throws 200205 when the chain does not answer", async () => {
  isSilent = true;
  const answers: unknown[] = [];
  times.find(3).then((time) => answers.push(time), answers.push);
  times.findBlockAt(0, 4).catch((error: unknown) => answers.push(error));
  await clock.advance(10_000);
  expect(answers).toEqual([undefined, expect.objectContaining({ code: 200_205 })]);
});

it.each([0, 1, 2, 3, 4])(
  "findBlockAt finds block %i by its own time, and the next one by a millisecond later",
  async (number) => {
    const time = (await times.find(number)) ?? Number.NaN;
    expect(await times.findBlockAt(time, 4)).toBe(number);
    expect(await times.findBlockAt(time + 1, 4)).toBe(number + 1);
  },
);
