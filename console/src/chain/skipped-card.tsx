import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useStele } from "../broker/session-context.tsx";
import { useFailure } from "../broker/use-failure.ts";
import { usePollMs } from "../broker/use-poll-ms.ts";
import { formatCount } from "../lib/format.ts";
import { Failure } from "../ui/failure.tsx";

const pollMs = 5000;
/** Skipped entries that the page shows. */
const shownMax = 100;

/** Entries on the chain that break the rules: why the index skipped each, and which account wrote it. */
export function SkippedCard({ groupId }: { readonly groupId: string }): ReactNode {
  const stele = useStele();
  const query = useQuery({
    queryKey: ["chain", "skipped", groupId],
    queryFn: ({ signal }) => stele.admin.skippedEntries({ groupId, limit: shownMax, signal }),
    refetchInterval: usePollMs(pollMs),
  });
  const { data } = query;
  const failure = useFailure(query);
  const entries = data?.entries ?? [];
  return (
    <section className="card" aria-label="Skipped entries">
      <h2>Skipped entries</h2>
      <Failure error={failure} />
      {data !== undefined && entries.length === 0 ? (
        <p className="quiet-text">None: every entry on the chain is a valid event or topic.</p>
      ) : null}
      {entries.length === 0 ? null : (
        <div className="table" role="region" aria-label="Table of skipped entries" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th scope="col">Block</th>
                <th scope="col">Why</th>
                <th scope="col">Written by</th>
                <th scope="col">Transaction</th>
              </tr>
            </thead>
            <tbody>
              {entries.map(({ blockNumber, logIndex, reason, details, sender, transactionHash }) => (
                <tr key={`${blockNumber} ${logIndex}`}>
                  <th scope="row">{formatCount(blockNumber)}</th>
                  <td>
                    <span className="badge">{reason}</span> {details}
                  </td>
                  <td className="address">{sender ?? "not known"}</td>
                  <td className="address">{transactionHash}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {entries.length === shownMax ? <p className="note">These are the newest {shownMax}.</p> : null}
    </section>
  );
}
