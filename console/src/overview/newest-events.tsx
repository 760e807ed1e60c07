import type { ReactNode } from "react";
import { Link } from "wouter";
import { previewOf } from "../inspector/read-content.ts";
import type { TailedEvent } from "../tail/event-buffer.ts";
import { useLiveTail } from "../tail/use-live-tail.ts";
import { Failure } from "../ui/failure.tsx";
import { ReceivedAt } from "../ui/time.tsx";

/** Events that the overview shows. */
const shownMax = 6;
const everything = { topic: "#", after: undefined, filter: undefined, groupId: undefined };

/** The newest events that arrived since the page was opened. */
export function NewestEvents(): ReactNode {
  const { events, status } = useLiveTail(everything, shownMax);
  const newest = Array.from({ length: shownMax }, (_, index) => events.at(events.length - 1 - index));
  const shown = newest.filter((item): item is TailedEvent => item !== undefined);
  return (
    <section className="card" aria-label="Newest events">
      <div className="title">
        <h2>Newest events</h2>
        <Link href="/tail">Open the tail</Link>
      </div>
      {status.name === "failed" ? (
        <Failure error={status.error} />
      ) : (
        <p className="quiet-text">
          {status.name === "reconnecting" ? `Reconnecting: ${status.reason}` : describe(shown)}
        </p>
      )}
      <ol className="newest">
        {shown.map(({ event, number, receivedAt }) => (
          <li key={number}>
            <Link href={`/events/${event.eventId}`}>
              <ReceivedAt ms={receivedAt} />
              <span className="topic">{event.topic}</span>
              <span className="preview">{previewOf(event.content)}</span>
            </Link>
          </li>
        ))}
      </ol>
    </section>
  );
}

function describe({ length }: readonly TailedEvent[]): string {
  return length === 0 ? "None since this page was opened." : "With the time at which this page received each.";
}
