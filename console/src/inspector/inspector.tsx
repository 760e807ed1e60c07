import type { ReceivedEvent } from "@stele/client";
import { useQuery } from "@tanstack/react-query";
import { memo, type ReactNode, useId, useMemo } from "react";
import { Link } from "wouter";
import { askAgain } from "../broker/ask-again.ts";
import { whileShown } from "../broker/while-shown.ts";
import { useStele } from "../broker/session-context.tsx";
import { mayShow, useRights } from "../broker/use-rights.ts";
import { parseEventId } from "../lib/event-id.ts";
import { formatCount, formatCounted } from "../lib/format.ts";
import { toAddress } from "../lib/to-address.ts";
import { CopyButton } from "../ui/copy-button.tsx";
import { Facts } from "../ui/facts.tsx";
import { Failure } from "../ui/failure.tsx";
import { ContentView } from "./content-view.tsx";
import { readEvent } from "./read-event.ts";

/** A position is the block number times this, plus the index of the event in its block (docs/admin.md). */
const positionsPerBlock = 2 ** 20;

export interface InspectorProps {
  readonly eventId: string;
  /** Group of the event; the default group if undefined. */
  readonly groupId: string | undefined;
  /** The event, if the caller already has it. */
  readonly known?: ReceivedEvent | undefined;
}

/** One event: its content, its extensions, and its place on the chain. Memoized, because a tail beside it renders often. */
export const Inspector = memo(function Inspector({ eventId, groupId, known }: InspectorProps): ReactNode {
  const stele = useStele();
  const { data, failureReason } = useQuery({
    ...askAgain,
    queryKey: ["event", groupId, eventId, useId()],
    queryFn: ({ signal }) => known ?? readEvent(stele, eventId, { groupId, signal }),
    ...whileShown,
  });
  const event = known ?? data; // After a reorg, another event may have this eventId.
  if (event === undefined) {
    return failureReason === null ? <p role="status">Loading the event …</p> : <Failure error={failureReason} />;
  }
  return <EventView event={event} groupId={groupId} />;
});

interface EventViewProps extends Pick<InspectorProps, "groupId"> {
  readonly event: ReceivedEvent;
}

function EventView({ event, groupId }: EventViewProps): ReactNode {
  const bytes = useMemo(() => event.bytes(), [event]);
  const isTailed = mayShow(useRights(), "subscribe");
  return (
    <>
      <Facts
        facts={{
          Topic: isTailed ? (
            <Link href={toAddress("/tail", { topic: event.topic, group: groupId })}>{event.topic}</Link>
          ) : (
            event.topic
          ),
          Event: (
            <span className="mono">
              {event.eventId} <CopyButton text={event.eventId} label="Copy id" />
            </span>
          ),
          Group: groupId,
          Size: formatCounted(bytes.length, "byte"),
        }}
      />
      <ContentView bytes={bytes} />
      <Extensions extensions={event.extensions} />
      <ChainPlace eventId={event.eventId} groupId={groupId} />
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

/** The block and the sequence come from the eventId. The place in the block comes from an admin call: only for operators, since the broker logs refusals. */
function ChainPlace({ eventId, groupId }: Pick<InspectorProps, "eventId" | "groupId">): ReactNode {
  const stele = useStele();
  const rights = useRights();
  const { data } = useQuery({
    ...askAgain,
    queryKey: ["place", groupId, eventId, useId()],
    queryFn: ({ signal }) => stele.admin.event(eventId, { groupId, signal }),
    ...whileShown,
    enabled: rights !== undefined && mayShow(rights, "admin"),
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
        <Link href={toAddress(`/events/${eventId}/proof`, { group: groupId })}>Prove it</Link>
      </p>
    </section>
  );
}
