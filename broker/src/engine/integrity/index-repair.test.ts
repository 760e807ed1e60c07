import { BrokerError } from "@stele/wire";
import { expect, test } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { type LogFields, type Logger, silentLogger } from "../../lib/logger.ts";
import { MemoryChain } from "../../ledger/memory/memory-chain.ts";
import { noMetrics } from "../../ports/metrics.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { TestEngine, type TestEngineOptions } from "../testing/test-engine.ts";

const topic = parseTopicName("orders");
const hourMs = 3_600_000;

/** Starts an engine whose store has copies of the chain's events, so that the test can damage only the store. */
async function startDamaged({ damaged = [1], ...options }: TestEngineOptions & { damaged?: readonly number[] } = {}) {
  const outcomes: string[] = [];
  const metrics = { ...noMetrics, indexDamaged: (_: string, outcome: string) => void outcomes.push(outcome) };
  const memory = createMemoryStore();
  const apply = memory.applyBlocks.bind(memory);
  memory.applyBlocks = async (groupId, blocks, applied) => {
    const copies = blocks.map((block) => {
      const batches = block.batches.map((batch) => ({ ...batch, events: Uint8Array.from(batch.events) }));
      return { ...block, batches };
    });
    await apply(groupId, copies, applied);
  };
  const engine = await TestEngine.start({ ...options, store: memory, metrics });
  await engine.broker.open({ topic, groupId: undefined });
  const eventIds = [await engine.publish(topic, "one"), await engine.publish(topic, "two")];
  for (const sequence of damaged) {
    const batch = await memory.findBatch(defaultGroupId, { topic, sequence });
    if (batch === undefined) throw new Error("nothing was indexed");
    const at = batch.events.length - 2;
    batch.events[at] = (batch.events[at] ?? 0) ^ 1;
  }
  const read = async (index: number): Promise<string> => {
    const event = await engine.broker.getEvent({ eventId: eventIds[index] ?? "", groupId: undefined });
    return Buffer.from(event.content).toString();
  };
  return { engine, outcomes, read, memory, eventIds };
}

function blockOfEvent(eventId: string | undefined): number {
  return Number(eventId?.split("-")[2]);
}

function chainInMemory(): MemoryChain {
  return new MemoryChain({ clock: { now: () => 0, monotonic: () => 0, after: () => () => {}, soon: () => {} } });
}

test("getEvent returns the event of a damaged batch from the chain, and repairs the batch once for two concurrent calls", async () => {
  const { engine, outcomes, read } = await startDamaged();
  expect(await Promise.all([read(0), read(0), read(1)])).toEqual(["one", "one", "two"]);
  expect(await read(0)).toBe("one");
  expect(outcomes).toEqual(["mended"]);
  await engine.stop();
});

test("while the chain does not return the block of a damaged batch, getEvent fails with 200208, and a subscription makes its group unready", async () => {
  const chain = chainInMemory();
  const { engine, outcomes, read } = await startDamaged({ chain });
  const find = chain.find.bind(chain);
  chain.find = () => {
    throw new BrokerError("chainUnreachable");
  };
  await expect(read(0)).rejects.toMatchObject({ code: 200208 });
  expect(await read(1)).toBe("two");
  const id = await engine.subscribe(topic, { offset: "OFFSET_FIRST" });
  await engine.clock.advance(100);
  expect(engine.broker.health()[0]).toMatchObject({ ready: false, reason: expect.stringContaining(id) });
  expect(engine.sink.attempts).toEqual([]);
  chain.find = find;
  await engine.clock.advance(hourMs / 2);
  expect(engine.broker.health()[0]).toMatchObject({ ready: true });
  expect(outcomes.at(-1)).toBe("mended");
  await engine.stop();
});

test.each([
  ["chainUnreachable", /tries again/],
  ["indexDamaged", /repair it with store\.sqlite of a backup/],
] as const)("the log says which batch is damaged, what its readers miss, and what to do: %s", async (name, remedy) => {
  const lines: (readonly [message: string, fields: LogFields | undefined])[] = [];
  const logger: Logger = { ...silentLogger, error: (message, fields) => void lines.push([message, fields]) };
  const chain = chainInMemory();
  const { engine, read } = await startDamaged({ chain, logger });
  chain.find = () => {
    throw new BrokerError(name);
  };
  await expect(read(0)).rejects.toMatchObject({ code: 200_208 });
  const [, fields] = lines.find(([message]) => message === "index damaged, and not repaired") ?? [];
  const texts = { reason: /topic .*orders/, effect: /with wildcards too/, remedy };
  for (const [key, text] of Object.entries(texts)) expect(fields?.[key]).toMatch(text);
  await engine.stop();
});

test("scrubbing repairs a damaged batch that no call has read", async () => {
  const { engine, outcomes } = await startDamaged();
  await engine.clock.advance(hourMs - 1_000);
  expect(outcomes).toEqual([]);
  await engine.clock.advance(2_000);
  expect(outcomes).toEqual(["mended"]);
  await engine.stop();
});

test("getEvent returns an event whose batch another node repaired meanwhile", async () => {
  const { engine, read, memory } = await startDamaged();
  const repair = memory.repairBatches.bind(memory);
  memory.repairBatches = async (groupId, block) => {
    await repair(groupId, block);
    return [];
  };
  expect(await read(0)).toBe("one");
  await engine.stop();
});

test("a scrub skips damage that it cannot repair, reports it once over all scrubs, and health warns until a scrub repairs it", async () => {
  const chain = chainInMemory();
  const limits = { scrubPeriodMs: hourMs };
  const { engine, outcomes, read, eventIds } = await startDamaged({ chain, damaged: [1, 2], limits });
  const find = chain.find.bind(chain);
  const first = blockOfEvent(eventIds[0]);
  chain.find = (block) => {
    if (block === first) throw new BrokerError("chainUnreachable");
    return find(block);
  };
  await engine.clock.advance(2 * hourMs);
  expect(outcomes).toEqual(["unmended", "mended"]);
  expect(await read(1)).toBe("two");
  await engine.clock.advance(4 * hourMs);
  expect(outcomes).toEqual(["unmended", "mended"]);
  const warning = expect.stringMatching(/the index is damaged: .*with store\.sqlite of a backup/);
  expect(engine.broker.health()[0]).toMatchObject({ ready: true, warning });
  chain.find = find;
  await engine.clock.advance(2 * hourMs);
  expect(engine.broker.health()[0]?.warning).toBeUndefined();
  await engine.stop();
});

test("no scrub begins if scrubPeriodMs is 0", async () => {
  const { engine, outcomes } = await startDamaged({ limits: { scrubPeriodMs: 0 } });
  await engine.clock.advance(2 * hourMs);
  expect(outcomes).toEqual([]);
  await engine.stop();
});
