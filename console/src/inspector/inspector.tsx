import type { ReceivedEvent } from "@stele/client";
import { useQuery } from "@tanstack/react-query";
import { memo, type ReactNode, useMemo } from "react";
import { Link } from "wouter";
import { useStele } from "../broker/session-context.tsx";
import { parseEventId } from "../lib/event-id.ts";
import { formatCount, formatCounted } from "../lib/format.ts";
import { CopyButton } from "../ui/copy-button.tsx";
import { Facts } from "../ui/facts.tsx";
import { Failure } from "../ui/failure.tsx";
import { ContentView } from "./content-view.tsx";

/** A position is the block number times this, plus the index of the event in its block (docs/admin.md). */
const positionsPerBlock = 2 ** 20;

export interface InspectorProps {
  readonly eventId: string;
  /** The event, if the caller already has it. */
  readonly known?: ReceivedEvent | undefined;
}

/** One event: its content, its extensions, and its place on the chain. Memoized, because a tail beside it renders often. */
export const Inspector = memo(function Inspector({ eventId, known }: InspectorProps): ReactNode {
  const stele = useStele();
  const { data: event, error } = useQuery({
    queryKey: ["event", eventId],
    queryFn: ({ signal }) => known ?? stele.getEvent(eventId, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (event === undefined) return error === null ? <p role="status">Loading the event …</p> : <Failure error={error} />;
  return <EventView event={event} />;
});

function EventView({ event }: { readonly event: ReceivedEvent }): ReactNode {
  const bytes = useMemo(() => event.bytes(), [event]);
  return (
    <>
      <Facts
        facts={{
          Topic: <Link href={`/tail?${new URLSearchParams({ topic: event.topic }).toString()}`}>{event.topic}</Link>,
          Event: (
            <span className="mono">
              {event.eventId} <CopyButton text={event.eventId} label="Copy id" />
            </span>
          ),
          Size: formatCounted(bytes.length, "byte"),
        }}
      />
      <ContentView bytes={bytes} />
      <Extensions extensions={event.extensions} />
      <ChainPlace eventId={event.eventId} />
    </>
  );
}

function Extensions({ extensions }: { readonly extensions: Readonly<Record<string, string>> }): ReactNode {
  const entries = Object.entries(extensions);
  return (
    <section aria-label="Extensions">
      <h3>Extensions</h3>
      {entries.length === 0 ? <p className="quiet-text">None.</p> : <Facts facts={extensions} />}
    </section>
  );
}

/** The block and the sequence come from the eventId. The place in the block comes from an admin call, which only operators may make. */
function ChainPlace({ eventId }: { readonly eventId: string }): ReactNode {
  const stele = useStele();
  const { data } = useQuery({
    queryKey: ["place", eventId],
    queryFn: ({ signal }) => stele.admin.event(eventId, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
    meta: { isOptional: true },
  });
  const place = parseEventId(eventId);
  return (
    <section aria-label="Place on the chain">
      <h3>Place on the chain</h3>
      <Facts
        facts={{
          "Number in its topic": place && formatCount(place.sequence),
          Block: place && formatCount(place.block),
          "Place in the block": data && formatCount((data.position % positionsPerBlock) + 1),
        }}
      />
      <p>
        <Link href={`/events/${eventId}/proof`}>Prove it</Link>
      </p>
    </section>
  );
}
