import type { ReactNode } from "react";
import { formatCount, formatCounted } from "../lib/format.ts";
import { Time } from "../ui/time.tsx";

export interface SeenRollback {
  readonly at: string;
  readonly fromBlock: number;
  readonly toBlock: number;
  readonly events?: number | undefined;
}

export interface RollbacksCardProps {
  /** Rollbacks since the index began. */
  readonly total: number;
  /** Rollbacks that the answering node has seen, newest first. */
  readonly seen: readonly SeenRollback[];
  /** When the rollbacks were read, in milliseconds since the epoch. */
  readonly now: number;
}

/** Rollbacks of the index, on a time line and in words. */
export function RollbacksCard({ total, seen, now }: RollbacksCardProps): ReactNode {
  return (
    <section className="card" aria-label="Rollbacks">
      <h2>Rollbacks</h2>
      <p className={total === 0 ? "quiet-text" : undefined}>
        {total === 0
          ? "No reorg has removed an indexed block."
          : `${formatCounted(total, "rollback")} of the index since it began; ${formatCount(seen.length)} seen by the node that answers.`}
      </p>
      {seen.length === 0 ? null : <Line seen={seen} now={now} />}
      <ol className="attempts">
        {seen.map((one) => (
          <li key={`${one.at} ${one.fromBlock}`}>
            <Time iso={one.at} /> · {describe(one)}
          </li>
        ))}
      </ol>
    </section>
  );
}

function describe({ fromBlock, toBlock, events }: SeenRollback): string {
  const to = toBlock < 0 ? "to an empty index" : `to block ${formatCount(toBlock)}`;
  const lost = events === undefined ? "" : `; ${formatCounted(events, "event")} removed`;
  return `from block ${formatCount(fromBlock)} ${to}${lost}`;
}

const [width, height] = [1000, 40];

/** A time line from the oldest rollback to now. The more blocks a rollback removed, the higher its mark. */
function Line({ seen, now }: Omit<RollbacksCardProps, "total">): ReactNode {
  const times = seen.map(({ at }) => Date.parse(at));
  const start = Math.min(...times);
  const length = Math.max(now - start, 1);
  const deepest = Math.max(...seen.map(depthOf), 1);
  return (
    <figure className="rollbacks">
      <svg
        viewBox={`-4 0 ${width + 8} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${formatCounted(seen.length, "rollback")}, the deepest of ${formatCounted(deepest, "block")}`}
      >
        {seen.map((one, index) => {
          const tall = Math.max((depthOf(one) / deepest) * height, 6);
          const x = (((times[index] ?? start) - start) / length) * width;
          return <rect key={`${one.at} ${one.fromBlock}`} x={x - 3} width={6} y={height - tall} height={tall} />;
        })}
      </svg>
      <figcaption className="ends quiet-text">
        <Time iso={new Date(start).toISOString()} />
        <span>now</span>
      </figcaption>
    </figure>
  );
}

function depthOf({ fromBlock, toBlock }: SeenRollback): number {
  return Math.max(fromBlock - toBlock, 0);
}
