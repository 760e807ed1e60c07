import { formatCount } from "../lib/format.ts";

/** The figures of one interval that the charts use. */
export interface Figure {
  readonly at: string;
  readonly published: number;
  readonly commitMs?: Percentiles | undefined;
  readonly delivered: number;
  readonly failed: number;
  readonly attemptMs?: Percentiles | undefined;
  readonly lagBlocks: number;
  readonly lagEvents: number;
  readonly memoryBytes: number;
}

interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

export interface ChartData {
  readonly title: string;
  readonly summary: string;
  readonly lines: readonly {
    readonly name: string;
    readonly colour: string;
    readonly values: readonly (number | null)[];
  }[];
  readonly format: (value: number) => string;
}

const secondMs = 1000;
const mebibyte = 2 ** 20;

const perSecond = (value: number): string => `${formatCount(round(value))}/s`;
const milliseconds = (value: number): string => `${formatCount(round(value))} ms`;
const mebibytes = (value: number): string => `${formatCount(Math.round(value))} MiB`;
const count = (value: number): string => formatCount(round(value));

/** Charts with one value for each interval; null where nothing was measured. */
export function toCharts({
  intervalMs,
  figures,
}: {
  readonly intervalMs: number;
  readonly figures: readonly Figure[];
}) {
  const seconds = intervalMs / secondMs;
  const rate = (pick: (figure: Figure) => number) => figures.map((figure) => pick(figure) / seconds);
  const percentiles = (pick: (figure: Figure) => Percentiles | undefined) => [
    { name: "median", colour: "--good", values: figures.map((figure) => pick(figure)?.p50 ?? null) },
    { name: "95 %", colour: "--warning", values: figures.map((figure) => pick(figure)?.p95 ?? null) },
    { name: "99 %", colour: "--bad", values: figures.map((figure) => pick(figure)?.p99 ?? null) },
  ];
  const charts: readonly Omit<ChartData, "summary">[] = [
    {
      title: "Events published",
      format: perSecond,
      lines: [{ name: "published", colour: "--accent", values: rate(({ published }) => published) }],
    },
    { title: "Time to commit", format: milliseconds, lines: percentiles(({ commitMs }) => commitMs) },
    {
      title: "Callbacks",
      format: perSecond,
      lines: [
        { name: "accepted", colour: "--accent", values: rate(({ delivered }) => delivered) },
        { name: "failed", colour: "--bad", values: rate(({ failed }) => failed) },
      ],
    },
    { title: "Time of an attempt", format: milliseconds, lines: percentiles(({ attemptMs }) => attemptMs) },
    {
      title: "Blocks that the index is behind",
      format: count,
      lines: [{ name: "behind", colour: "--accent", values: figures.map(({ lagBlocks }) => lagBlocks) }],
    },
    {
      title: "Events that the slowest callback waits for",
      format: count,
      lines: [{ name: "waiting", colour: "--accent", values: figures.map(({ lagEvents }) => lagEvents) }],
    },
    {
      title: "Memory",
      format: mebibytes,
      lines: [{ name: "memory", colour: "--accent", values: figures.map(({ memoryBytes }) => memoryBytes / mebibyte) }],
    },
  ];
  return {
    times: figures.map(({ at }) => Date.parse(at) / secondMs),
    charts: charts.map((chart): ChartData => ({ ...chart, summary: summarise(chart) })),
  };
}

/** The lines in words, for readers who do not see the picture. */
function summarise({ lines, format }: Omit<ChartData, "summary">): string {
  const parts = lines.flatMap(({ name, values }) => {
    const known = values.filter((value) => value !== null);
    const last = known.at(-1);
    return last === undefined ? [] : [`${name} ${format(last)}, at most ${format(Math.max(...known))}`];
  });
  return parts.length === 0 ? "nothing was measured in the last hour" : parts.join("; ");
}

function round(value: number): number {
  return value >= 10 ? Math.round(value) : Math.round(value * 100) / 100;
}
