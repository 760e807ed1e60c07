const counts = new Intl.NumberFormat("en");
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const full = new Intl.DateTimeFormat("en-CA", { dateStyle: "short", timeStyle: "medium", hourCycle: "h23" });

/** 12,345 */
export function formatCount(count: number): string {
  return counts.format(count);
}

/** `1 event`, `2 events` */
export function formatCounted(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** How far an index has come; -1 is an index without a block. */
export function formatIndexed(block: number): string {
  return block < 0 ? "no block yet" : `up to block ${formatCount(block)}`;
}

/** Time of the day, to the second. */
export function formatClock(ms: number): string {
  return clock.format(ms);
}

export function formatTime(iso: string): string {
  return full.format(new Date(iso)).replace(", ", " ");
}

const units = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
] as const;

/** `3 minutes ago`, as of now. */
export function formatAgo(iso: string): string {
  return `${formatDuration(Math.max(Date.now() - Date.parse(iso), 0))} ago`;
}

/** `in 3 minutes`, as of now; `now` for a past time. */
export function formatIn(iso: string): string {
  const leftMs = Date.parse(iso) - Date.now();
  return leftMs <= 0 ? "now" : `in ${formatDuration(leftMs)}`;
}

/** `3 minutes`: the largest unit that fits at least once, rounded down. */
export function formatDuration(ms: number): string {
  for (const [unit, unitMs] of units) {
    if (ms >= unitMs) return formatCounted(Math.floor(ms / unitMs), unit);
  }
  return "less than a second";
}
