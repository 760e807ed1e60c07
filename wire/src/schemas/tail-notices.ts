import * as z from "zod";

/** Data of the notice `resync`: a reorganisation of the chain removed what came after this place. */
export const tailResyncSchema = z
  .strictObject({
    after: z
      .string()
      .meta({ pattern: "^(@[0-9]+|OFFSET_FIRST)$" })
      .describe("`@` and the number of a block, or OFFSET_FIRST: before the first event."),
    id: z.string().describe("The `Last-Event-ID` for a reconnect, if the client gets no event after the notice."),
  })
  .meta({ title: "TailResync" });

/** Data of the notice `end`: the broker ends the tail. */
export const tailEndSchema = z
  .strictObject({ reason: z.enum(["stopping", "stale", "refused", "failed"]).describe("See docs/tail.md.") })
  .meta({ title: "TailEnd" });

/** The notice `resync` as a line of NDJSON. */
export const tailResyncLineSchema = z.strictObject({ resync: tailResyncSchema }).meta({ title: "TailResyncLine" });

/** The notice `end` as a line of NDJSON. */
export const tailEndLineSchema = z.strictObject({ end: tailEndSchema }).meta({ title: "TailEndLine" });

/** SSE fields of an event besides its data. */
export const tailFieldsSchema = z.object({
  id: z.string().optional().describe("SSE field: the eventId, with which a client reconnects. NDJSON has no fields."),
});
