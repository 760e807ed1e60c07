import fc from "fast-check";
import { expect, it } from "vitest";
import { advance, toPosition } from "./position.ts";
import { matchesFilter, parseTopicFilter } from "./topic-filter.ts";
import { parseTopicName } from "./topic-name.ts";
import { type VanishedBatch, VanishedEvents } from "./vanished-events.ts";

const names = ["a", "a/b", "c"].map((name) => parseTopicName(name));
const filters = ["a", "a/#", "#", "c", "d", "+"].map((filter) => parseTopicFilter(filter));
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
      place,
      (steps, filter, place) => {
        const batches = toBatches(steps);
        const position = toPosition(place.block, place.index);
        const events = batches
          .filter(({ topic }) => matchesFilter(filter, topic))
          .flatMap((batch) => Array.from({ length: batch.count }, (_, index) => advance(batch.firstPosition, index)));
        const counted = new VanishedEvents(batches).countUpTo(filter, position);
        expect(counted).toBe(events.filter((event) => event <= position).length);
      },
    ),
  );
});
