import { endOfBlock, positionZero } from "../../domain/position.ts";
import type { Topic } from "../../domain/topic.ts";
import type { Store } from "../../ports/store.ts";
import type { Group } from "../group.ts";
import type { EventBound } from "./calls.ts";

export interface EventBoundsParts {
  readonly group: Pick<Group, "id" | "findHead" | "times">;
  /** Need not read dropped events from the chain: a bound needs only sequences. */
  readonly store: Pick<Store, "readBatches">;
}

/**
 * The sequence at which a bound lies. A time gives the first event of that time or later, else the next free sequence.
 * @throws BrokerError 200205 if the bound is a time and the chain does not return its block times.
 */
export async function findSequence(
  bound: EventBound,
  { name, sequence }: Pick<Topic, "name" | "sequence">,
  { group, store }: EventBoundsParts,
): Promise<number> {
  if ("sequence" in bound) return bound.sequence;
  const head = Math.max(0, (await group.findHead())?.blockNumber ?? 0);
  const block = await group.times.findBlockAt(bound.time, head);
  const after = block === 0 ? positionZero : endOfBlock(block - 1);
  const range = { after, upTo: endOfBlock(head), topic: name, batchesMax: 1, bytesMax: 1 };
  const [batch] = await store.readBatches(group.id, range);
  return batch?.firstSequence ?? sequence + 1;
}
