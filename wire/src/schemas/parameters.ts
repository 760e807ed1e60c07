import * as z from "zod";

const optionalText = (description: string) => z.string().nullish().describe(description);

/** Parameters that operations share. Only their types are checked here: the rules of a value belong to the engine. */
export const parameter = {
  topic: z.string().describe("Topic name: 1 to 256 characters in [32,128], without + and #."),
  topicFilter: z.string().describe("Topic name, or a pattern with + and # by the MQTT convention."),
  groupId: optionalText("Chain group; left out or blank means the default group."),
  url: z.string().describe("Callback address, http or https."),
  optionalSubscriptionId: optionalText("Identifier of an earlier subscription, to continue it."),
  subscriptionId: z.string().describe("Subscription identifier."),
  eventId: z.string().describe("Event identifier."),
  offset: optionalText(
    "Where a new subscription starts: OFFSET_FIRST, OFFSET_LAST (default) or an eventId, exclusive.",
  ),
  secret: optionalText(
    "Secret that signs the callbacks (Standard Webhooks). It belongs to its url: another url needs it again.",
  ),
  base64Content: z
    .string()
    .describe("Event content: Base64 with the standard alphabet and padding.")
    .meta({ contentEncoding: "base64" }),
  textContent: z.string().describe("Event content: text, stored as its UTF-8 bytes."),
  extensions: z.record(z.string(), z.string()).nullish().describe("Extension data; each key begins with the prefix."),
  // Any number is taken: one that is no page index has an error of its own (100104), which the engine gives.
  pageIndex: z
    .number()
    .nullish()
    .describe("Page, counted from 0; left out means 0.")
    .meta({ type: "integer", minimum: 0 }),
  pageSize: z.int().nullish().describe("Topics a page, 1 to 99; left out or outside that means 10."),
};
