import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useStele } from "../broker/session-context.tsx";
import { useFailure } from "../broker/use-failure.ts";
import { usePollMs } from "../broker/use-poll-ms.ts";
import { formatCount } from "../lib/format.ts";
import { Failure } from "../ui/failure.tsx";
import type { ListProps } from "./callback-list.tsx";
import { MoreNote } from "./more-note.tsx";
import { ChoiceField, CountField, SearchForm, TextField } from "./search-form.tsx";
import { connections, findSessions, type ListedSession, protocols, readSessionSearch } from "./session-search.ts";
import { Waiting } from "./waiting.tsx";

const pollMs = 3000;

/** Sessions of MQTT, STOMP and tails with their lag. */
export function SessionList({ search, onSearch }: ListProps): ReactNode {
  const stele = useStele();
  const query = useQuery({
    queryKey: ["sessions", search.toString()],
    queryFn: ({ signal }) => findSessions(stele, readSessionSearch(search), signal),
    refetchInterval: usePollMs(pollMs),
    placeholderData: (earlier) => earlier,
  });
  const { data } = query;
  const failure = useFailure(query);
  return (
    <>
      <SearchForm search={search} onSearch={onSearch}>
        <input type="hidden" name="list" value="sessions" />
        <ChoiceField label="Protocol" name="kind" search={search} choices={protocols} />
        <ChoiceField label="Connection" name="connected" search={search} choices={connections} />
        <TextField label="Owner" name="owner" search={search} />
        <CountField label="Minimum events waiting" name="lagMin" search={search} />
      </SearchForm>
      <Failure error={failure} />
      {data === undefined ? null : <SessionTable items={data.items} />}
      <MoreNote page={data} />
    </>
  );
}

function SessionTable({ items }: { readonly items: readonly ListedSession[] }): ReactNode {
  if (items.length === 0) return <p className="quiet-text card">No session of MQTT, STOMP or a tail matches.</p>;
  return (
    <div className="card table" role="region" aria-label="Sessions found" tabIndex={0}>
      <table className="stacked">
        <thead>
          <tr>
            <th scope="col">Filters and identifier</th>
            <th scope="col">Protocol</th>
            <th scope="col">State</th>
            <th scope="col">Waiting</th>
            <th scope="col">Owner</th>
            <th scope="col">Node</th>
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <SessionRow key={`${item.groupId} ${item.id}`} item={item} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function SessionRow({ item }: { readonly item: ListedSession }): ReactNode {
  const { id, kind, isConnected, isSuspended, lag, owner, node, filters } = item;
  const state = stateOf(isConnected, isSuspended);
  return (
    <tr>
      <th scope="row">
        {describeFilters(filters.map(({ topic }) => topic))}
        <p className="address quiet-text">{id}</p>
      </th>
      <td data-label="Protocol">{kind}</td>
      <td data-label="State">
        <span className={`badge badge-${state}`}>{state}</span>
      </td>
      <td data-label="Waiting">
        <Waiting lag={lag} since={item.waitingSince} />
      </td>
      <td data-label="Owner">{owner ?? "–"}</td>
      <td data-label="Node">{node ?? "–"}</td>
    </tr>
  );
}

/** Filters of a session that a row shows; a session may have a thousand. */
const filtersShownMax = 8;

function describeFilters(topics: readonly string[]): string {
  if (topics.length === 0) return "no filter";
  const more = topics.length - filtersShownMax;
  return `${topics.slice(0, filtersShownMax).join(", ")}${more > 0 ? ` and ${formatCount(more)} more` : ""}`;
}

function stateOf(isConnected: boolean, isSuspended: boolean): string {
  if (isSuspended) return "suspended";
  return isConnected ? "connected" : "disconnected";
}
