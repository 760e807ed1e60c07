import { useVirtualizer } from "@tanstack/react-virtual";
import { type MouseEvent, type ReactNode, type RefObject, useLayoutEffect, useRef, useState } from "react";
import { previewOf } from "../inspector/read-content.ts";
import { toAddress } from "../lib/to-address.ts";
import { ReceivedAt } from "../ui/time.tsx";
import type { EventBuffer, TailedEvent } from "./event-buffer.ts";
import type { LiveTail } from "./live-tail.ts";

const rowHeight = 34;
/** Rows rendered above the first and below the last visible row. */
const overscan = 10;

export interface EventRowsProps {
  readonly tail: LiveTail;
  /** The element that scrolls; it can have the focus. */
  readonly scroller: RefObject<HTMLDivElement | null>;
  readonly selected: string | undefined;
  readonly onSelect: (eventId: string) => void;
}

/** The kept events, the newest last. Renders only the visible rows, and stays at the end until somebody scrolls up. */
export function EventRows({ tail, scroller, selected, onSelect }: EventRowsProps): ReactNode {
  const [isFollowing, setFollowing] = useState(true);
  const { events } = tail;
  // oxlint-disable-next-line react/incompatible-library -- The console is built without the React Compiler, so nothing memoizes the virtualizer's results.
  const virtualizer = useVirtualizer({
    count: events.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    getItemKey: (index) => events.at(index)?.number ?? index,
    overscan,
  });
  useStillRows(scroller, { events, isFollowing });
  const onScroll = (): void => {
    const element = scroller.current;
    if (element !== null) setFollowing(element.scrollHeight - element.scrollTop - element.clientHeight < rowHeight);
  };
  const follow = (): void => {
    setFollowing(true);
    scroller.current?.focus(); // The button is about to go.
  };
  const items = virtualizer.getVirtualItems();
  return (
    <div className="rows card">
      <p className="heads">
        <span className="time">Received</span>
        <span>Topic</span>
        <span>Content</span>
        <span className="id">Event</span>
      </p>
      <div className="scroller" ref={scroller} onScroll={onScroll} tabIndex={0} role="group" aria-label="Events">
        {events.length === 0 ? <Waiting tail={tail} /> : null}
        <ol style={{ blockSize: virtualizer.getTotalSize() }}>
          {items.map(({ index, key, start }) => {
            const item = events.at(index);
            return item === undefined ? null : (
              <Row
                key={key}
                item={item}
                groupId={tail.query.groupId}
                offset={start}
                isSelected={item.event.eventId === selected}
                onSelect={onSelect}
              />
            );
          })}
        </ol>
      </div>
      {isFollowing ? null : (
        <button type="button" className="follow" onClick={follow}>
          Newest events
        </button>
      )}
    </div>
  );
}

/** While following, keeps the newest row in sight. Otherwise keeps the visible rows in place while older ones are dropped. */
function useStillRows(
  scroller: RefObject<HTMLDivElement | null>,
  { events, isFollowing }: { readonly events: EventBuffer; readonly isFollowing: boolean },
): void {
  const first = events.at(0)?.number;
  const count = events.length;
  const previous = useRef<{
    readonly first: number | undefined;
    readonly count: number;
    readonly isFollowing: boolean;
  }>(undefined);
  // No dependency list: with one, React could skip the effect. It may discard a render but keep that render's dependencies. Events arrive at any time, so the
  // kept dependencies may already equal those of the next render, which does reach the screen.
  useLayoutEffect(() => {
    const before = previous.current;
    previous.current = { first, count, isFollowing };
    const hasChanged = first !== before?.first || count !== before?.count || isFollowing !== before.isFollowing;
    const dropped = (first ?? 0) - (before?.first ?? first ?? 0);
    if (isFollowing && hasChanged) scroller.current?.scrollTo({ top: count * rowHeight });
    else if (!isFollowing && dropped > 0) scroller.current?.scrollBy({ top: -dropped * rowHeight });
  });
}

interface RowProps {
  readonly item: TailedEvent;
  readonly groupId: string | undefined;
  readonly offset: number;
  readonly isSelected: boolean;
  readonly onSelect: (eventId: string) => void;
}

function Row({ item, groupId, offset, isSelected, onSelect }: RowProps): ReactNode {
  const { eventId, topic, content } = item.event;
  const select = (event: MouseEvent): void => {
    // With one of these keys, a browser opens the link in a new tab or window, or saves it.
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    onSelect(eventId);
  };
  return (
    <li style={{ transform: `translateY(${offset}px)` }}>
      <a href={toAddress(`events/${eventId}`, { group: groupId })} onClick={select} aria-current={isSelected}>
        <ReceivedAt ms={item.receivedAt} />
        <span className="topic">{topic}</span>
        <span className="preview">{previewOf(content)}</span>
        <span className="id">{eventId}</span>
      </a>
    </li>
  );
}

function Waiting({ tail }: { readonly tail: LiveTail }): ReactNode {
  return tail.status.name === "failed" || tail.status.name === "ended" ? null : (
    <p className="waiting quiet-text">No event yet: new events of {tail.query.topic} appear here.</p>
  );
}
