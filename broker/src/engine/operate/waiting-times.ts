import type { GroupId } from "../../domain/group-id.ts";
import { blockOf, type Position } from "../../domain/position.ts";
import { untilAborted } from "../../lib/until-aborted.ts";
import type { Clock } from "../../ports/clock.ts";
import type { BlockTimes } from "../block-times.ts";
import { Deadline } from "../time.ts";

/** Maximum number of blocks whose times are read for one page. */
const blocksReadMax = 32;
/** How long a page waits for the times of its blocks, in milliseconds. */
const blocksWaitMs = 1_000;

type Times = Pick<BlockTimes, "find">;

export interface WaitingTimesParts {
  readonly groups: { find(id: GroupId): { readonly times: Times } | undefined };
  readonly clock: Clock;
}

/** Position of the oldest event that waits; undefined if none waits. */
export interface OldestWaiting {
  readonly groupId: GroupId;
  readonly from: Position | undefined;
}

/**
 * Finds for each entry the block time of its oldest event, as the chain gives it; undefined if unknown. Reads at most {@link blocksReadMax} blocks, those with
 * the lowest positions.
 */
export async function findWaitingTimes(
  all: readonly OldestWaiting[],
  { groups, clock }: WaitingTimesParts,
): Promise<readonly (number | undefined)[]> {
  const times = new Map<string, number | undefined>();
  const reads = new Map<string, Promise<unknown>>();
  for (const one of all.filter(isWaiting).toSorted((left, right) => left.from - right.from)) {
    const [key, group] = [keyOf(one), groups.find(one.groupId)];
    if (group === undefined || reads.has(key)) continue;
    if (reads.size === blocksReadMax) break;
    reads.set(
      key,
      group.times.find(blockOf(one.from)).then((time) => times.set(key, time)),
    );
  }
  using deadline = new Deadline(clock, blocksWaitMs);
  await untilAborted(Promise.all(reads.values()), deadline.signal);
  return all.map((one) => (isWaiting(one) ? times.get(keyOf(one)) : undefined));
}

type WaitingFrom = OldestWaiting & { readonly from: Position };

function isWaiting(one: OldestWaiting): one is WaitingFrom {
  return one.from !== undefined;
}

function keyOf({ groupId, from }: WaitingFrom): string {
  return `${groupId} ${blockOf(from)}`;
}
