import type { TopicFilter } from "../domain/topic-filter.ts";
import type { SessionFilter } from "../domain/session-filter.ts";
import type { AuditTrail } from "./access/audit-trail.ts";
import type { Caller } from "./access/caller.ts";
import type { Attachment, AttachRequest } from "./broker.ts";

interface AuditedAttachment {
  readonly caller: Caller;
  readonly request: Pick<AttachRequest, "groupId" | "stream" | "key">;
  readonly trail: AuditTrail;
}

/** Writes to the audit log which filters a client adds and removes. These changes cost the client nothing, so their lines are limited. */
export function auditAttachment(attachment: Attachment, { caller, request, trail }: AuditedAttachment): Attachment {
  const { groupId } = request;
  const note = (
    filters: readonly (SessionFilter | TopicFilter)[],
    results: readonly unknown[],
    action: string,
  ): void => {
    for (const [index, filter] of filters.entries()) {
      const result = results[index];
      const subject = { groupId, topic: typeof filter === "string" ? filter : filter.filter };
      if (typeof result !== "boolean") trail.recordRefusal(caller, { action, error: result }, subject);
      else if (result || action === "subscribe") trail.recordFilterChange(caller, action, subject);
    }
  };
  return {
    session: attachment.session,
    isPresent: attachment.isPresent,
    subscribe: async (sessionFilters) => {
      const results = await attachment.subscribe(sessionFilters);
      note(sessionFilters, results, "subscribe");
      return results;
    },
    unsubscribe: async (filters) => {
      const results = await attachment.unsubscribe(filters);
      note(filters, results, "unsubscribe");
      return results;
    },
    detach: (leave) => attachment.detach(leave),
    linger: (until) => attachment.linger(until),
    end: async () => {
      await attachment.end();
      if (request.stream !== undefined)
        trail.recordFilterChange(caller, "unsubscribe", { groupId, subscriptionId: request.key });
    },
  };
}
