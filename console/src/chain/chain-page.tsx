import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link, useSearchParams } from "wouter";
import { askAgain } from "../broker/ask-again.ts";
import { useStele } from "../broker/session-context.tsx";
import { useFailure } from "../broker/use-failure.ts";
import { usePollMs } from "../broker/use-poll-ms.ts";
import { take } from "../lib/take.ts";
import { Failure } from "../ui/failure.tsx";
import { Page } from "../ui/page.tsx";
import { BlockList } from "./block-list.tsx";
import { RollbacksCard } from "./rollbacks-card.tsx";
import { SkippedCard } from "./skipped-card.tsx";

const pollMs = 3000;
const blocksShown = 20;
/** Groups that the page offers to choose from. */
const groupsMax = 100;

/** A group's blocks with their events, its skipped entries and its rollbacks. The URL names the group, and the block below which the list of blocks begins. */
export function ChainPage(): ReactNode {
  const [search] = useSearchParams();
  const stele = useStele();
  const chosen = search.get("group") ?? undefined;
  const query = useQuery({
    queryKey: ["chain", "groups"],
    queryFn: async ({ signal }) => (await take(stele.admin.groups({ signal }), groupsMax)).items,
    refetchInterval: usePollMs(pollMs),
  });
  const { data: groups, dataUpdatedAt } = query;
  const failure = useFailure(query);
  const group = chosen === undefined ? groups?.[0] : groups?.find(({ groupId }) => groupId === chosen);
  const below = readBlock(search.get("below"));
  return (
    <Page title="Chain">
      <Failure error={failure} />
      {groups === undefined || (groups.length < 2 && group !== undefined) ? null : (
        <nav className="bar" aria-label="Groups">
          {groups.map(({ groupId }) => (
            <Link
              key={groupId}
              href={toAddress(groupId, undefined)}
              aria-current={groupId === group?.groupId ? "page" : undefined}
            >
              Group {groupId}
            </Link>
          ))}
        </nav>
      )}
      {groups !== undefined && group === undefined && chosen !== undefined ? (
        <p className="note">The broker has no group {chosen}.</p>
      ) : null}
      {group === undefined ? null : (
        <>
          <BlocksCard groupId={group.groupId} below={below} />
          <SkippedCard groupId={group.groupId} />
          <RollbacksCard total={group.rollBacks} seen={group.rollBackHistory} now={dataUpdatedAt} />
        </>
      )}
    </Page>
  );
}

interface BlocksCardProps {
  readonly groupId: string;
  /** Lists blocks below this number; undefined for the newest blocks. */
  readonly below: number | undefined;
}

function BlocksCard({ groupId, below }: BlocksCardProps): ReactNode {
  const stele = useStele();
  const interval = usePollMs(pollMs);
  const query = useQuery({
    ...(below === undefined ? { refetchInterval: interval } : askAgain),
    queryKey: ["chain", "blocks", groupId, below],
    queryFn: ({ signal }) => take(stele.admin.blocks({ groupId, below, limit: blocksShown + 1, signal }), blocksShown),
  });
  const { data } = query;
  const failure = useFailure(query);
  const last = data?.items.at(-1)?.block;
  return (
    <section className="card" aria-label="Blocks">
      <div className="title">
        <h2>{below === undefined ? "Newest blocks with events" : `Blocks below ${below}`}</h2>
        {below === undefined ? null : <Link href={toAddress(groupId, undefined)}>Newest</Link>}
      </div>
      <Failure error={failure} />
      {data === undefined ? null : <BlockList groupId={groupId} blocks={data.items} />}
      {data?.hasMore === true && last !== undefined ? (
        <p>
          <Link href={toAddress(groupId, last)}>Older blocks</Link>
        </p>
      ) : null}
    </section>
  );
}

function toAddress(group: string, below: number | undefined): string {
  const search = new URLSearchParams({ group });
  if (below !== undefined) search.set("below", String(below));
  return `/chain?${search.toString()}`;
}

function readBlock(text: string | null): number | undefined {
  return text !== null && /^\d{1,10}$/.test(text) ? Number(text) : undefined;
}
