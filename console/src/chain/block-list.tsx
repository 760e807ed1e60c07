import type { Stele } from "@stele/client";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { askAgain } from "../broker/ask-again.ts";
import { useStele } from "../broker/session-context.tsx";
import { mayShow, useRights } from "../broker/use-rights.ts";
import { previewOf } from "../inspector/read-content.ts";
import { formatCount, formatCounted } from "../lib/format.ts";
import { take } from "../lib/take.ts";
import { toAddress } from "../lib/to-address.ts";
import { CopyButton } from "../ui/copy-button.tsx";
import { Failure } from "../ui/failure.tsx";
import { toTransactions } from "./to-transactions.ts";

type Blocks = ReturnType<Stele["admin"]["blocks"]>;
export type Block = Blocks extends AsyncGenerator<infer Item> ? Item : never;
type Batch = Block["batches"][number];

/** Events of a batch that the list shows; the tail shows the others. */
const eventsShown = 20;

export interface BlockListProps {
  readonly groupId: string;
  readonly blocks: readonly Block[];
}

/** Blocks with their transactions and batches. The list decodes a batch when somebody opens it. */
export function BlockList({ groupId, blocks }: BlockListProps): ReactNode {
  if (blocks.length === 0) return <p className="quiet-text">No block has events.</p>;
  return (
    <ol className="blocks">
      {blocks.map(({ block, batches, isCut }) => (
        <li key={block}>
          <h3>
            Block {formatCount(block)}{" "}
            <span className="quiet-text">
              {isCut ? "at least " : ""}
              {formatCounted(countEvents(batches), "event")}
            </span>
          </h3>
          {toTransactions(batches).map((transaction) => (
            <div key={transaction.hash} className="transaction">
              <p className="quiet-text">
                Transaction <span className="mono">{transaction.hash}</span>{" "}
                <CopyButton text={transaction.hash} of={`the hash of transaction ${transaction.hash}`} /> by{" "}
                <span className="mono">{transaction.publisher}</span>
              </p>
              {transaction.batches.map((batch) => (
                <BatchDetails key={batch.logIndex} groupId={groupId} batch={batch} />
              ))}
            </div>
          ))}
          {isCut ? <p className="note">The block has more batches than are shown.</p> : null}
        </li>
      ))}
    </ol>
  );
}

interface BatchProps {
  readonly groupId: string;
  readonly batch: Batch;
}

function BatchDetails({ groupId, batch }: BatchProps): ReactNode {
  const [isOpen, setOpen] = useState(false);
  const { topic, firstSequence, count, bytes, logIndex } = batch;
  const numbers =
    count === 1
      ? formatCount(firstSequence)
      : `${formatCount(firstSequence)} to ${formatCount(firstSequence + count - 1)}`;
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        {topic}: {count === 1 ? "event" : "events"} {numbers}{" "}
        <span className="quiet-text">
          log {logIndex}, {formatCounted(bytes, "byte")}
        </span>
      </summary>
      {isOpen ? <BatchEvents groupId={groupId} batch={batch} /> : null}
    </details>
  );
}

function BatchEvents({ groupId, batch }: BatchProps): ReactNode {
  const { topic, firstSequence, count, firstEventId, transactionHash } = batch;
  const stele = useStele();
  const isTailed = mayShow(useRights(), "subscribe");
  const shown = Math.min(count, eventsShown);
  const { data, failureReason } = useQuery({
    ...askAgain,
    // After a reorg, another transaction may have a batch with the same first eventId.
    queryKey: ["chain", "batch", groupId, firstEventId, transactionHash],
    queryFn: async ({ signal }) => {
      // Without `from`, the client would read on below the batch, where the broker may have to ask the chain for an event, or fail to get it.
      const range = { from: firstSequence, before: firstSequence + shown };
      return (
        await take(stele.admin.events(topic, { groupId, ...range, limit: shown, signal }), shown)
      ).items.toReversed();
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (data === undefined) {
    return failureReason === null ? <p role="status">Decoding …</p> : <Failure error={failureReason} />;
  }
  return (
    <>
      <ol className="newest">
        {data.map(({ eventId, sequence, content }) => (
          <li key={eventId}>
            <Link href={toAddress(`/events/${eventId}`, { group: groupId })}>
              <span className="number">{formatCount(sequence)}</span>
              <span className="topic mono">{eventId}</span>
              <span className="preview">{previewOf(content)}</span>
            </Link>
          </li>
        ))}
      </ol>
      {count > shown ? (
        <p className="quiet-text">
          And {formatCounted(count - shown, "event")} more
          {isTailed ? (
            <>
              :{" "}
              <Link href={toAddress("/tail", { topic, after: data.at(-1)?.eventId ?? firstEventId, group: groupId })}>
                tail them
              </Link>
            </>
          ) : null}
        </p>
      ) : null}
    </>
  );
}

function countEvents(batches: readonly Batch[]): number {
  return batches.reduce((sum, { count }) => sum + count, 0);
}
