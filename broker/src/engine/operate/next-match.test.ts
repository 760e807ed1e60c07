import { afterEach, beforeEach, expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { positionZero } from "../../domain/position.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { TimeSlices } from "../../lib/time-slices.ts";
import { TestEngine } from "../testing/test-engine.ts";
import { findNextMatch } from "./next-match.ts";

let engine: TestEngine;
beforeEach(async () => {
  engine = await TestEngine.start();
  for (const topic of ["many", "one/more"]) await engine.broker.open({ topic, groupId: undefined });
});
afterEach(() => engine.stop());

it("finds the match after 300 events that do not match, and yields to other work meanwhile", async () => {
  await engine.publishMany("many", 300);
  await engine.publish("one/more", "text");
  let now = 0;
  let turns = 0;
  const soon = (action: () => void): void => {
    turns += 1;
    setImmediate(action);
  };
  const slices = new TimeSlices({ monotonic: () => (now += 10), soon });
  const from = { groupId: defaultGroupId, filter: parseTopicFilter("+/more"), cursor: positionZero };
  const found = await findNextMatch({ store: engine.store, slices }, from);
  expect(found).toMatchObject({ topic: "one/more", sequence: 1 });
  expect(turns).toBeGreaterThanOrEqual(4);
});
