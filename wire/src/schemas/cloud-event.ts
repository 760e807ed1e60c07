import * as z from "zod";

/** Context attributes of an event of the broker (CloudEvents 1.0.2); docs/tail.md says where each comes from. */
const attributes = {
  specversion: z.literal("1.0"),
  id: z.string().describe("The eventId."),
  source: z.string().describe("Chain and contract of the topic, by CAIP-10."),
  type: z.string().describe("The type that the publisher gave, else that of the broker's settings."),
  subject: z.string().describe("The topic."),
  time: z.iso.datetime().optional().describe("Time of the block; left out while the chain does not answer."),
  datacontenttype: z.string().describe("Media type of the content."),
  dataschema: z.string().optional().describe("The schema that the publisher gave."),
  sequence: z
    .string()
    .meta({ pattern: "^[0-9]{16,}$" })
    .describe("Number of the event in its topic, padded so that texts sort as numbers do."),
  otherextensions: z
    .string()
    .optional()
    .describe(
      "JSON object of the extensions that cannot be attributes, by their keys: those whose name is taken, or whose value has a control character.",
    ),
};

/** An event in the JSON format of CloudEvents. Members that are not listed are extensions. */
export const cloudEventSchema = z
  .object({
    ...attributes,
    data: z.unknown().optional().describe("The content, if it is JSON or text."),
    data_base64: z.base64().optional().describe("The content in Base64, if it is anything else."),
  })
  .catchall(z.string())
  .meta({ title: "CloudEvent" });

/** Events in the JSON batch format. */
export const cloudEventBatchSchema = z.array(cloudEventSchema).min(1).meta({ title: "CloudEventBatch" });

/** A ping as a CloudEvent. It is not an event of the broker, and has neither topic nor sequence. */
export const cloudEventPingSchema = z
  .strictObject({
    specversion: z.literal("1.0"),
    id: z.string().meta({ pattern: "^ping-" }).describe("The same as `webhook-id`."),
    source: z.literal("urn:stele"),
    type: z.literal("stele.ping"),
    datacontenttype: z.literal("application/json"),
    data: z.strictObject({ subscriptionId: z.string().describe("The subscription.") }),
  })
  .meta({ title: "CloudEventPing" });

const { datacontenttype: _inContentType, ...inHeaders } = attributes;

/** Headers of an event in binary mode (HTTP protocol binding 1.0.2, section 3.1); `datacontenttype` is the content type. */
export const cloudEventHeadersSchema = z.object(
  Object.fromEntries(Object.entries(inHeaders).map(([name, schema]) => [`ce-${name}`, schema as z.ZodType])),
);
