import type { ReactNode } from "react";
import { formatCount } from "../lib/format.ts";
import { Ago } from "../ui/time.tsx";

export interface WaitingProps {
  /** Events that wait. */
  readonly lag: number;
  /** Since when the oldest event waits; undefined if the broker does not say. */
  readonly since: string | undefined;
}

/** Lag as count and age. */
export function Waiting({ lag, since }: WaitingProps): ReactNode {
  return (
    <>
      {formatCount(lag)}
      {lag === 0 || since === undefined ? null : (
        <p className="quiet-text">
          oldest <Ago iso={since} />
        </p>
      )}
    </>
  );
}
