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
  /** When the index began to write them. */
  readonly startedAt: number;
}

const eventIds = new EventIds();

/** Shows that events with a trace are final and in the index. */
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
