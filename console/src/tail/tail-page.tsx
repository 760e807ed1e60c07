import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useCallback, useEffect, useRef } from "react";
import { useSearchParams } from "wouter";
import { logIns } from "../broker/addresses.ts";
import { formatCounted } from "../lib/format.ts";
import { CopyButton } from "../ui/copy-button.tsx";
import { Failure } from "../ui/failure.tsx";
import { Page } from "../ui/page.tsx";
import { Inspector } from "../inspector/inspector.tsx";
import { EventRows } from "./event-rows.tsx";
import type { LiveTail, TailQuery } from "./live-tail.ts";
import { TailForm } from "./tail-form.tsx";
import { useLiveTail } from "./use-live-tail.ts";

const everything = "#";

/** Events as they come. The URL has the pattern, the filter, the start and the selected event. */
export function TailPage(): ReactNode {
  const [search, setSearch] = useSearchParams();
  const query = readQuery(search);
  const tail = useLiveTail(query);
  useEventsAfterReorg(tail);
  const rows = useRef<HTMLDivElement>(null);
  const selected = search.get("event") ?? undefined;
  const select = useCallback(
    (eventId: string | undefined) => {
      setSearch(
        (current) => {
          const next = new URLSearchParams(current);
          if (eventId === undefined) next.delete("event");
          else next.set("event", eventId);
          return next;
        },
        { replace: true },
      );
    },
    [setSearch],
  );
  const close = (): void => {
    select(undefined);
    rows.current?.focus();
  };
  const startWith = (next: TailQuery): void => setSearch(toSearch(next));
  return (
    <Page title="Tail" isFull>
      <TailForm query={query} text={toSearch(query).toString()} onSubmit={startWith} />
      <TailBar tail={tail} />
      <div className="split">
        <EventRows scroller={rows} tail={tail} selected={selected} onSelect={select} />
        {selected === undefined ? null : (
          <aside className="card inspector" aria-label={`Event ${selected}`}>
            <div className="title">
              <h2>Event</h2>
              <button type="button" className="quiet" onClick={close}>
                Close
              </button>
            </div>
            <Inspector
              eventId={selected}
              groupId={query.groupId}
              known={tail.events.find(selected)?.event}
              key={selected}
            />
          </aside>
        )}
      </div>
    </Page>
  );
}

/** Asks again for the selected event after a reorg, which may have removed it. */
function useEventsAfterReorg({ resync }: LiveTail): void {
  const queries = useQueryClient();
  useEffect(() => {
    if (resync === undefined) return;
    for (const head of ["event", "place"]) void queries.resetQueries({ queryKey: [head] });
  }, [queries, resync]);
}

function readQuery(search: URLSearchParams): TailQuery {
  return {
    topic: search.get("topic") ?? everything,
    after: search.get("after") ?? undefined,
    filter: search.get("filter") ?? undefined,
    groupId: search.get("group") ?? undefined,
  };
}

function toSearch({ topic, after, filter, groupId }: TailQuery): URLSearchParams {
  const search = new URLSearchParams({ topic });
  if (after !== undefined) search.set("after", after);
  if (filter !== undefined) search.set("filter", filter);
  if (groupId !== undefined) search.set("group", groupId);
  return search;
}

function TailBar({ tail }: { readonly tail: LiveTail }): ReactNode {
  const { status, place, resync, events } = tail;
  const isRunning = status.name !== "paused" && status.name !== "ended" && status.name !== "failed";
  return (
    <div className="bar">
      <button type="button" onClick={() => (isRunning ? tail.pause() : tail.resume())}>
        {isRunning ? "Pause" : "Resume"}
      </button>
      <button type="button" className="quiet" onClick={() => tail.clear()}>
        Clear
      </button>
      <p className={`state state-${status.name}`}>
        {/* Without the count: a screen reader would say it again with each event. */}
        <span role="status">{describe(tail)}</span> · {formatCounted(events.length, "event")} kept
      </p>
      {status.name === "paused" && place !== undefined ? (
        <CopyButton text={toAddress(tail.query, place)} label="Copy link to this place" />
      ) : null}
      {resync === undefined ? null : <p className="note">A reorg removed the events after {resync.after}.</p>}
      {status.name === "failed" ? <Failure error={status.error} /> : null}
    </div>
  );
}

function describe({ status, place }: LiveTail): string {
  switch (status.name) {
    case "connecting":
      return "Connecting";
    case "live":
      return "Live";
    case "paused":
      return place === undefined ? "Paused" : `Paused at ${place}: nothing is missed`;
    case "ended":
      return `Ended: the broker asks for a ${logIns.length === 0 ? "key" : "log-in"}`;
    case "reconnecting":
      return `Reconnecting: ${status.reason}`;
    default:
      return "Ended";
  }
}

function toAddress(query: TailQuery, place: string): string {
  return new URL(`tail?${toSearch({ ...query, after: place }).toString()}`, document.baseURI).href;
}
