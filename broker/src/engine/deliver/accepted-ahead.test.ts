import { expect, it } from "vitest";
import type { EventEnd } from "../../domain/event-window.ts";
import { toPosition } from "../../domain/position.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { findAcceptedAhead } from "./accepted-ahead.ts";

it.each<[string, readonly (readonly [topic: string, end: EventEnd | undefined])[], readonly number[]]>([
  ["nothing without events", [], []],
  [
    "accepted events after a waiting event of another topic",
    [
      ["a", undefined],
      ["b", "accepted"],
      ["b", "accepted"],
    ],
    [1, 2],
  ],
  [
    "no event after a waiting one of its topic",
    [
      ["a", undefined],
      ["b", "accepted"],
      ["b", undefined],
      ["b", "accepted"],
    ],
    [1],
  ],
  [
    "no event after a skipped one of its topic",
    [
      ["a", undefined],
      ["b", "skipped"],
      ["b", "accepted"],
    ],
    [],
  ],
  [
    "no event after a passed one of its topic",
    [
      ["a", undefined],
      ["b", "passed"],
      ["b", "accepted"],
    ],
    [],
  ],
])("finds %s", (_, events, expected) => {
  const entries = events.map(([topic, end], index) => ({
    position: toPosition(1, index),
    end,
    event: { topic: parseTopicName(topic) },
  }));
  expect([...findAcceptedAhead(entries)]).toEqual(expected.map((index) => toPosition(1, index)));
});
