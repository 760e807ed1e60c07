import type { ReactNode } from "react";
import { formatAgo, formatTime } from "../lib/format.ts";

export function Time({ iso }: { readonly iso: string }): ReactNode {
  return (
    <time dateTime={iso} title={iso}>
      {formatTime(iso)}
    </time>
  );
}

/** How long ago, as of the rendering. */
export function Ago({ iso }: { readonly iso: string }): ReactNode {
  return (
    <time dateTime={iso} title={iso}>
      {formatAgo(iso)}
    </time>
  );
}
