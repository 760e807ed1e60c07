import fc from "fast-check";
import { expect, it } from "vitest";
import { advance, toPosition } from "./position.ts";
import { matchesFilter, parseTopicFilter } from "./topic-filter.ts";
import { parseTopicName } from "./topic-name.ts";
import { type VanishedBatch, VanishedEvents } from "./vanished-events.ts";

const names = ["a", "a/b", "a/b/c", "c", "$s/b"].map((name) => parseTopicName(name));
const filters = ["a", "a/#", "a/+", "a/b/#", "#", "c", "d", "+", "+/b", "+/#", "$s/+", "$s/#"].map((filter) =>
  parseTopicFilter(filter),
);
const hash = `0x${"00".repeat(32)}` as const;

const stepArbitrary = fc.record({
  topic: fc.constantFrom(...names),
  count: fc.integer({ min: 1, max: 4 }),
  gap: fc.integer({ min: 0, max: 3 }),
  isNextBlock: fc.boolean(),
});
type Step = typeof stepArbitrary extends fc.Arbitrary<infer Value> ? Value : never;

function toBatches(steps: readonly Step[]): readonly VanishedBatch[] {
  let [block, index] = [1, 0];
  return steps.map(({ topic, count, gap, isNextBlock }) => {
    if (isNextBlock) [block, index] = [block + 1, 0];
    const firstPosition = toPosition(block, index + gap);
    index += gap + count;
    return { topic, count, firstPosition, firstSequence: 1, blockNumber: block, transactionHash: hash, logIndex: 0 };
  });
}

it("counts vanished events like a naive count, event by event", () => {
  const place = fc.record({ block: fc.integer({ min: 0, max: 12 }), index: fc.integer({ min: 0, max: 40 }) });
  fc.assert(
    fc.property(
      fc.array(stepArbitrary, { maxLength: 20 }),
      fc.constantFrom(...filters),
      fc.array(place, { minLength: 1, maxLength: 3 }),
      (steps, filter, places) => {
        const batches = toBatches(steps);
        const events = batches
          .filter(({ topic }) => matchesFilter(filter, topic))
          .flatMap((batch) => Array.from({ length: batch.count }, (_, index) => advance(batch.firstPosition, index)));
        const vanished = new VanishedEvents();
        vanished.add(batches.slice(0, 3));
        vanished.add(batches.slice(3));
        for (const { block, index } of places) {
          const position = toPosition(block, index);
          expect(vanished.countUpTo(filter, position)).toBe(events.filter((event) => event <= position).length);
        }
      },
    ),
  );
});

/** Counts how often `work` looks for the end of a topic level or splits a text into levels: a measure of the filters and topics that it compares. */
function comparisonsOf(work: () => void): number {
  const { indexOf, split } = String.prototype;
  let count = 0;
  const counting = (call: (...values: never[]) => unknown) =>
    function (this: string, ...values: never[]): unknown {
      count += 1;
      return call.apply(this, values);
    };
  Object.assign(String.prototype, { indexOf: counting(indexOf), split: counting(split) });
  try {
    work();
  } finally {
    Object.assign(String.prototype, { indexOf, split });
  }
  return count;
}

it("compares no pattern with all topics, and counts subscriptions of one pattern together", () => {
  const topics = 1_000;
  const batches = Array.from({ length: topics }, (_, index) => {
    const place = { count: 1, firstPosition: toPosition(1, index), firstSequence: 1, blockNumber: 1, logIndex: index };
    return { ...place, topic: parseTopicName(`t/${index}/x`), transactionHash: hash };
  });
  const own = Array.from({ length: topics }, (_, index) => parseTopicFilter(`t/${index}/#`));
  const common = Array.from({ length: topics }, () => parseTopicFilter("+/+/x"));
  const counts: number[] = [];
  const comparisons = comparisonsOf(() => {
    const vanished = new VanishedEvents();
    vanished.add(batches);
    for (const filter of [...own, ...common]) counts.push(vanished.countUpTo(filter, toPosition(1, topics)));
  });
  expect(counts).toEqual([...Array(topics).fill(1), ...Array(topics).fill(topics)]);
  expect(comparisons).toBeLessThan(10 * topics);
});
