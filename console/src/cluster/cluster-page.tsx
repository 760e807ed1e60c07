import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useSessionState } from "../broker/session-context.tsx";
import { useFailure } from "../broker/use-failure.ts";
import { usePollMs } from "../broker/use-poll-ms.ts";
import { formatCount, formatIndexed } from "../lib/format.ts";
import { Facts } from "../ui/facts.tsx";
import { Failure } from "../ui/failure.tsx";
import { Page } from "../ui/page.tsx";
import { describeDeliveries } from "./describe-deliveries.ts";
import { HistoryCard } from "./history-card.tsx";
import { NodesCard } from "./nodes-card.tsx";
import { type Group, readCluster } from "./read-cluster.ts";

const pollMs = 3000;

/** Nodes, and the chains that they follow. */
export function ClusterPage(): ReactNode {
  const { watcher, isKeyWanted } = useSessionState();
  const query = useQuery({
    queryKey: ["cluster"],
    queryFn: ({ signal }) => readCluster(watcher, signal),
    refetchInterval: usePollMs(pollMs),
  });
  const { data } = query;
  const failure = useFailure(query);
  return (
    <Page title="Cluster">
      <Failure error={failure} />
      {/* Nobody asks while the key is refused, so the last answer may be old. */}
      {data === undefined || failure !== null || isKeyWanted ? null : (
        <>
          {data.groups.map((group) => (
            <GroupCard key={group.groupId} group={group} />
          ))}
          <NodesCard nodes={data.nodes} />
          <HistoryCard history={data.history} />
          <p>
            <Link href="/subscriptions?list=sessions">Sessions of MQTT, STOMP and tails</Link>
          </p>
        </>
      )}
    </Page>
  );
}

const roles: Readonly<Record<string, string>> = {
  follows: "this node follows the chain",
  watches: "another node follows the chain, this one watches the index",
};

function GroupCard({ group }: { readonly group: Group }): ReactNode {
  const { groupId, ready, reason, warning, role, headBlock, indexedBlock, rollBacks } = group;
  return (
    <section className="card" aria-label={`Group ${groupId}`}>
      <h2>Group {groupId}</h2>
      <p className={`health health-${ready ? "good" : "bad"}`}>
        {ready ? "Ready" : `Cannot serve: ${reason ?? "the broker gives no reason"}`}
      </p>
      {warning === undefined ? null : <p className="note">{warning}</p>}
      <Facts
        facts={{
          Role: role && (roles[role] ?? role),
          "Head of the chain": headBlock === undefined ? undefined : `block ${formatCount(headBlock)}`,
          Indexed: formatIndexed(indexedBlock),
          ...describeDeliveries(group),
          Rollbacks: formatCount(rollBacks),
          ...toChainFacts(group.chain),
        }}
      />
    </section>
  );
}

const chainFacts: Readonly<Record<string, string>> = {
  chainId: "Chain identifier",
  genesisHash: "First block",
  registry: "Registry",
  signer: "Signer of this node",
};

function toChainFacts(chain: Group["chain"] = {}): Readonly<Record<string, ReactNode>> {
  return Object.fromEntries(
    Object.entries(chain).map(([name, value]) => [
      chainFacts[name] ?? name,
      <span key={name} className="mono">
        {value}
      </span>,
    ]),
  );
}
