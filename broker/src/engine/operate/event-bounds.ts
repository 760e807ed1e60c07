import { beforeBlock, endOfBlock } from "../../domain/position.ts";
import type { Topic } from "../../domain/topic.ts";
import type { Store } from "../../ports/store.ts";
import type { Group } from "../group.ts";
import type { EventBound } from "./calls.ts";

export interface EventBoundsParts {
  readonly group: Pick<Group, "id" | "findHead" | "times">;
  /** May leave out the content of events: a bound needs none. */
  readonly store: Pick<Store, "readBatches">;
}

/** The lowest sequence of a topic at or after a bound; the next free sequence if the topic has no such event. @throws BrokerError 200205 for a time. */
export async function findSequence(
  bound: EventBound,
  { name, sequence }: Pick<Topic, "name" | "sequence">,
  { group, store }: EventBoundsParts,
): Promise<number> {
  if ("sequence" in bound) return bound.sequence;
  const head = Math.max(0, (await group.findHead())?.blockNumber ?? 0);
  const block = await group.times.findBlockAt(bound.time, head);
  const after = beforeBlock(block);
  const range = { after, upTo: endOfBlock(head), topic: name, batchesMax: 1, bytesMax: 1 };
  const [batch] = await store.readBatches(group.id, range);
  return batch?.firstSequence ?? sequence + 1;
}
