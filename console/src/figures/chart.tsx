import { type ReactNode, useEffect, useRef } from "react";
import uPlot from "uplot";
import { formatClock } from "../lib/format.ts";
import "uplot/dist/uPlot.min.css";

export interface Line {
  readonly name: string;
  /** Name of the CSS custom property with the line's colour. */
  readonly colour: string;
  readonly values: readonly (number | null)[];
}

export interface ChartProps {
  readonly title: string;
  /** Text that a screen reader reads instead of the picture. */
  readonly summary: string;
  /** Seconds since the epoch. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
}

const height = 190;
const axisWidth = 64;
/** Smallest distance between two times on the axis, in pixels. */
const timeSpace = 90;
const secondMs = 1000;

/** A chart of the last hour. Later renders may change the values, but not the set of lines. The cursors of all charts of a page move together. */
export function Chart({ title, summary, times, lines, format }: ChartProps): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const shown = useRef({ times, lines, format });
  useEffect(() => {
    shown.current = { times, lines, format };
    plot.current?.setData(toData(shown.current));
  }, [times, lines, format]);
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const draw = (): void => {
      plot.current?.destroy();
      plot.current = new uPlot(toOptions(element, shown.current), toData(shown.current), element);
    };
    draw();
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height }));
    scheme.addEventListener("change", draw);
    resized.observe(element);
    return () => {
      scheme.removeEventListener("change", draw);
      resized.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, []);
  return (
    <figure className="card chart">
      <figcaption>
        <h2>{title}</h2>
        <p className="quiet-text">{summary}</p>
      </figcaption>
      <div ref={place} role="img" aria-label={`${title}: ${summary}`} />
    </figure>
  );
}

type Shown = Pick<ChartProps, "times" | "lines" | "format">;

function toData({ times, lines }: Pick<Shown, "times" | "lines">): uPlot.AlignedData {
  return [[...times], ...lines.map(({ values }) => [...values])];
}

function toOptions(element: HTMLElement, { lines, format }: Shown): uPlot.Options {
  const style = getComputedStyle(element);
  // A canvas resolves neither CSS custom properties nor the functions in their values.
  const colourOf = (name: string): string => resolveColour(element, style.getPropertyValue(name));
  const axis = {
    stroke: colourOf("--text-quiet"),
    grid: { stroke: colourOf("--line"), width: 1 },
    ticks: { show: false },
  };
  return {
    width: element.clientWidth,
    height,
    cursor: { sync: { key: "figures" }, drag: { x: false, y: false } },
    scales: { y: { range: (_plot, _low, high) => [0, Math.max(high * 1.1, 1)] } },
    axes: [
      { ...axis, space: timeSpace, values: (_plot, times) => times.map(toClock) },
      { ...axis, size: axisWidth, values: (_plot, values) => values.map(format) },
    ],
    series: [
      { label: "time", value: (_plot, seconds) => toClock(seconds) },
      ...lines.map(({ name, colour }) => ({
        label: name,
        stroke: colourOf(colour),
        width: 1.5,
        // No line leads to a value between two missing ones, so it needs a point.
        points: {
          show: (plot: uPlot, series: number) => plot.data[series]?.some((value) => value === null) ?? false,
          size: 5,
        },
        value: (_plot: uPlot, value: number | null) => (value === null ? "–" : format(value)),
      })),
    ],
  };
}

/** The time of day at the cursor; `seconds` is null while the cursor is outside the chart. */
function toClock(seconds: number | null): string {
  return seconds === null ? "–" : formatClock(seconds * secondMs);
}

function resolveColour(element: HTMLElement, value: string): string {
  const probe = document.createElement("span");
  probe.style.color = value;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
