import { expect, test } from "vitest";
import { type Figure, toCharts } from "./to-charts.ts";

const quiet: Figure = {
  at: "2026-11-23T10:00:00.000Z",
  published: 0,
  delivered: 0,
  failed: 0,
  lagBlocks: 0,
  lagEvents: 7,
  memoryBytes: 100 * 2 ** 20,
};
const busy: Figure = {
  ...quiet,
  at: "2026-11-23T10:00:05.000Z",
  published: 6000,
  delivered: 3,
  commitMs: { p50: 4, p95: 9.26, p99: 20 },
};

test("toCharts gives rates per second, and null where nothing was measured", () => {
  const { times, charts } = toCharts({ intervalMs: 5000, figures: [quiet, busy] });
  expect(times).toEqual([1_795_428_000, 1_795_428_005]);
  expect(charts.map(({ title, lines }) => [title, lines.map(({ values }) => values)])).toEqual([
    ["Events published", [[0, 1200]]],
    [
      "Time to commit",
      [
        [null, 4],
        [null, 9.26],
        [null, 20],
      ],
    ],
    [
      "Callbacks",
      [
        [0, 0.6],
        [0, 0],
      ],
    ],
    [
      "Time of an attempt",
      [
        [null, null],
        [null, null],
        [null, null],
      ],
    ],
    ["Blocks that the index is behind", [[0, 0]]],
    ["Events that the slowest callback waits for", [[7, 7]]],
    ["Memory", [[100, 100]]],
  ]);
});

test("toCharts summarises each chart in words, and says when nothing was measured", () => {
  const { charts } = toCharts({ intervalMs: 5000, figures: [busy, quiet] });
  expect(charts.map(({ summary }) => summary)).toEqual([
    "published 0/s, at most 1,200/s",
    "median 4 ms, at most 4 ms; 95 % 9.26 ms, at most 9.26 ms; 99 % 20 ms, at most 20 ms",
    "accepted 0/s, at most 0.6/s; failed 0/s, at most 0/s",
    "nothing was measured in the last hour",
    "behind 0, at most 0",
    "waiting 7, at most 7",
    "memory 100 MiB, at most 100 MiB",
  ]);
});
