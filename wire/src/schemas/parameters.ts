import * as z from "zod";

const optionalText = (description: string) => z.string().nullish().describe(description);

/** Parameters that operations share. Schemas check only types: the engine checks the rules of a value. */
export const parameter = {
  topic: z.string().describe("Topic name: 1 to 256 characters in [32,128], without + and #."),
  topicFilter: z.string().describe("Topic name, or a pattern with + and # by the MQTT convention."),
  groupId: optionalText("Chain group; omitted or blank means the default group."),
  url: z.string().describe("Callback address, http or https."),
  optionalSubscriptionId: optionalText("Identifier of an earlier subscription, to resume it."),
  subscriptionId: z.string().describe("Subscription identifier."),
  eventId: z.string().describe("Event identifier."),
  offset: optionalText(
    "Start of a new subscription: OFFSET_FIRST, OFFSET_LAST (default), or an eventId to start after that event.",
  ),
  secret: optionalText(
    "Secret that signs the callbacks (Standard Webhooks): whsec_ with the Base64 of 24 to 64 bytes, or whsk_ with that of an Ed25519 private key. Over REST, `generate` makes one, which only the header stele-secret of the answer shows. It is bound to its url: with a new url, pass it again.",
  ),
  format: optionalText(
    "Form of the callbacks: interface (default), cloudevents (structured), or cloudevents-binary, which a secret makes structured.",
  ),
  concurrency: z.int().nullish().describe("Topics to deliver at once, 1 (default) to 64; each topic keeps its order."),
  batch: z
    .int()
    .nullish()
    .describe("Maximum number of events in one callback, 1 to 1,000; 0 (default) for callbacks of one event."),
  batchMs: z
    .int()
    .nullish()
    .describe("How long a batch that is not full waits for more events, 0 (default) to 60,000 ms."),
  onFailure: optionalText(
    "What happens to an event that the receiver does not accept: suspend (default) stops the subscription before that event, skip makes the event a dead letter and continues.",
  ),
  attemptsMax: z
    .int()
    .nullish()
    .describe("With onFailure=skip: failed attempts after which an event is a dead letter, 1 to 100; 10 by default."),
  base64Content: z
    .string()
    .describe("Event content: Base64 with the standard alphabet and padding.")
    .meta({ contentEncoding: "base64" }),
  textContent: z.string().describe("Event content: text, stored as its UTF-8 bytes."),
  extensions: z.record(z.string(), z.string()).nullish().describe("Extension data; each key begins with the prefix."),
  traceParent: optionalText("W3C Trace Context: becomes an extension of the event, and a header of its callbacks."),
  idempotencyKey: optionalText(
    "Key that names this publish: a repeat with the same key is answered with the same event. 1 to 255 visible ASCII characters.",
  ),
  // Accepts any number: the engine refuses an invalid page index with its own error (100104).
  pageIndex: z
    .number()
    .meta({ type: "integer", minimum: 0 })
    .nullish()
    .describe("Page number, from 0; omitted means 0."),
  // Accepts any integer, also one that is not safe: each one outside the range means the default.
  pageSize: z
    .number()
    .refine(Number.isInteger, "Invalid input: expected int")
    .meta({ type: "integer" })
    .nullish()
    .describe("Topics per page, 1 to 99; omitted or outside that range means 10."),
};
