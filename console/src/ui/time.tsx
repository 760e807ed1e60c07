import type { ReactNode } from "react";
import { formatAgo, formatClock, formatIn, formatTime } from "../lib/format.ts";
import { useClock } from "../lib/use-clock.ts";

export function Time({ iso }: { readonly iso: string }): ReactNode {
  return (
    <time dateTime={iso} title={iso}>
      {formatTime(iso)}
    </time>
  );
}

/** How long ago. */
export function Ago({ iso }: { readonly iso: string }): ReactNode {
  useClock();
  return (
    <time dateTime={iso} title={iso}>
      {formatAgo(iso)}
    </time>
  );
}

/** How long until then. */
export function Until({ iso }: { readonly iso: string }): ReactNode {
  useClock();
  return (
    <time dateTime={iso} title={iso}>
      {formatIn(iso)}
    </time>
  );
}

/** When this page received an event. A tail does not give the time of the event's block. */
export function ReceivedAt({ ms }: { readonly ms: number }): ReactNode {
  const iso = new Date(ms).toISOString();
  return (
    <time dateTime={iso} title={`Received ${iso}`}>
      {formatClock(ms)}
    </time>
  );
}
