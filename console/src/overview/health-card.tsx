import type { GroupReadiness } from "@stele/client";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useSessionState } from "../broker/session-context.tsx";
import { useFailure } from "../broker/use-failure.ts";
import { usePollMs } from "../broker/use-poll-ms.ts";
import { formatCount, formatIndexed } from "../lib/format.ts";
import { Facts } from "../ui/facts.tsx";
import { Failure } from "../ui/failure.tsx";
import { describeHealth } from "./health-in-words.ts";

const pollMs = 2000;

/** The broker's health in words, with the head and the indexed block of each group's chain. */
export function HealthCard(): ReactNode {
  const { watcher, isKeyWanted } = useSessionState();
  const query = useQuery({
    queryKey: ["readiness"],
    queryFn: ({ signal }) => watcher.readiness({ signal }),
    refetchInterval: usePollMs(pollMs),
  });
  const { data } = query;
  const failure = useFailure(query);
  const health = data && describeHealth(data);
  return (
    <section className="card" aria-label="Health">
      <h2>Health</h2>
      <Failure error={failure} />
      {/* Nobody asks about health while the key is refused, so the last answer may be old. */}
      {health === undefined || failure !== null || isKeyWanted ? null : (
        <>
          <p role="status" className={`health health-${health.tone}`}>
            {health.sentence}
          </p>
          {health.reasons.length === 0 ? null : (
            <ul>
              {health.reasons.map((reason) => (
                <li key={reason}>{reason}</li>
              ))}
            </ul>
          )}
          {data?.groups?.map((group) => (
            <GroupFacts key={group.groupId} group={group} />
          ))}
        </>
      )}
    </section>
  );
}

function GroupFacts({ group }: { readonly group: GroupReadiness }): ReactNode {
  const { groupId, headBlock, indexedBlock } = group;
  return (
    <Facts
      facts={{
        Group: groupId,
        "Head of the chain": headBlock === undefined ? undefined : `block ${formatCount(headBlock)}`,
        Indexed: formatIndexed(indexedBlock),
      }}
    />
  );
}
