import type { ReactNode } from "react";
import { formatCount } from "../lib/format.ts";
import { Time } from "../ui/time.tsx";
import type { Node } from "./read-cluster.ts";

/** The nodes of the cluster, and what each does. */
export function NodesCard({ nodes }: { readonly nodes: readonly Node[] }): ReactNode {
  return (
    <section className="card" aria-label="Nodes">
      <h2>Nodes</h2>
      <div className="table" role="region" aria-label="Table of nodes" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Address</th>
              <th scope="col">Follows the chain of</th>
              <th scope="col">Subscriptions</th>
              <th scope="col">Sessions</th>
              <th scope="col">Member since</th>
              <th scope="col">Identifier</th>
            </tr>
          </thead>
          <tbody>
            {nodes.map(({ id, address, joinedAt, isOwn, roles }) => (
              <tr key={id ?? "own"}>
                <th scope="row">
                  {address ?? "a single process"}{" "}
                  {isOwn ? <span className="badge badge-active">answers you</span> : null}
                </th>
                <td>{roles.follows.length === 0 ? "–" : describeGroups(roles.follows)}</td>
                <td>{formatCount(roles.subscriptions)}</td>
                <td>{formatCount(roles.sessions)}</td>
                <td>{joinedAt === undefined ? "–" : <Time iso={joinedAt} />}</td>
                <td className="mono">{id ?? "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function describeGroups(groupIds: readonly string[]): string {
  return `${groupIds.length === 1 ? "group" : "groups"} ${groupIds.join(", ")}`;
}
