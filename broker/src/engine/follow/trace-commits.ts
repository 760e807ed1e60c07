import type { EventBatch } from "../../domain/event.ts";
import { findTraceParent } from "../../domain/trace-parent.ts";
import type { Tracing } from "../../ports/tracing.ts";
import { eventsOf } from "../batch-events.ts";
import { EventIds } from "../event-ids.ts";
import { messageAttributes } from "../message-attributes.ts";

export interface CommitTraces {
  readonly tracing: Tracing;
  readonly extensionPrefix: string;
  readonly groupId: string;
  /** When the write of the batches to the index began, in milliseconds since the epoch. */
  readonly startedAt: number;
}

const eventIds = new EventIds();

/** Records a span for each event with a trace, once the event is in the index. */
export function traceCommits(batches: readonly EventBatch[], traces: CommitTraces): void {
  const { tracing, extensionPrefix, groupId, startedAt } = traces;
  for (const batch of batches) {
    for (const event of eventsOf(batch)) {
      const traceParent = findTraceParent(event.extensions, extensionPrefix);
      if (traceParent === undefined) continue;
      const { topic, blockNumber } = event;
      const attributes = {
        ...messageAttributes("commit", { topic, eventId: eventIds.of(event) }),
        "stele.group": groupId,
        "stele.block": blockNumber,
      };
      tracing
        .start({ name: `commit ${topic}`, kind: "internal", traceParents: [traceParent], attributes, startedAt })
        .end({});
    }
  }
}
