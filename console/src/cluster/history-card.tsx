import type { ReactNode } from "react";
import { Time } from "../ui/time.tsx";
import { describeChange } from "./describe-change.ts";
import type { MemberChange } from "./read-cluster.ts";

/** Which nodes came and went, and what they took over. */
export function HistoryCard({ history }: { readonly history: readonly MemberChange[] }): ReactNode {
  if (history.length === 0) return null;
  return (
    <section className="card" aria-label="History">
      <h2>History</h2>
      <p className="quiet-text">The newest changes that the answering node has seen since it started.</p>
      <ol className="attempts">
        {history.map((change, index) => (
          // New changes come first, so a change keeps its distance from the end. Its time is not a key: two changes may have the same.
          <li key={history.length - index}>
            <Time iso={change.at} /> · {describeChange(change)}
          </li>
        ))}
      </ol>
    </section>
  );
}
