import type { ReactNode } from "react";
import { formatCount } from "../lib/format.ts";
import type { Taken } from "../lib/take.ts";

/** Says that the list has more items than it shows. */
export function MoreNote({ page }: { readonly page: Taken<unknown> | undefined }): ReactNode {
  if (page?.hasMore !== true) return null;
  return <p className="note">These are the first {formatCount(page.items.length)}: narrow the search to see others.</p>;
}
