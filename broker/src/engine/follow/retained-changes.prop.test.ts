import { encodeEvents } from "@stele/wire";
import fc from "fast-check";
import { expect, it } from "vitest";
import { alpha, batchOf, beta, blockOf } from "../../ports/store-examples.contract.ts";
import { advance } from "../../domain/position.ts";
import { RetainedChanges } from "./retained-changes.ts";

const key = fc.constantFrom("svc-retain", "svc-retai", "svc-retaine", "svc-qos", "retain");
const value = fc.constantFrom("true", "True", "false", "", "svc-retain");
const event = fc.record({
  content: fc.oneof(fc.uint8Array({ maxLength: 3 }), fc.constant(Buffer.from("svc-retain\u0084true", "latin1"))),
  extensions: fc.array(fc.tuple(key, value), { maxLength: 3 }),
});
const batches = fc.array(
  fc.record({ topic: fc.constantFrom(alpha, beta), events: fc.array(event, { minLength: 1, maxLength: 4 }) }),
  { maxLength: 5 },
);

it("finds the last event with the retain extension in each topic, among any contents and extensions", () => {
  fc.assert(
    fc.property(batches, (drafts) => {
      const expected = new Map<string, unknown>();
      let index = 0;
      const made = drafts.map(({ topic, events }) => {
        const batch = batchOf(topic, {
          block: 3,
          index,
          sequence: index + 1,
          count: events.length,
          events: encodeEvents(events),
        });
        index += events.length;
        for (const [at, { content, extensions }] of events.entries()) {
          if (extensions.find(([name]) => name === "svc-retain")?.[1] !== "true") continue;
          const place = { sequence: batch.firstSequence + at, position: advance(batch.firstPosition, at) };
          expected.set(topic, { name: topic, retained: content.length === 0 ? undefined : place });
        }
        return batch;
      });
      const { retained = [] } = new RetainedChanges("svc-").addTo(blockOf(3, { batches: made }));
      expect(new Set(retained)).toEqual(new Set(expected.values()));
    }),
  );
});
