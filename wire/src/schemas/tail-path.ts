import type { JsonSchema } from "./json-schema.ts";

const text = { type: "string" };

export interface TailParameter {
  readonly name: string;
  readonly in: "query" | "header";
  readonly required: boolean;
  readonly description: string;
  readonly schema: JsonSchema;
  readonly style?: string;
  readonly explode?: boolean;
}

/** Query and headers of a tail. */
export const tailParameters: readonly TailParameter[] = [
  {
    name: "topic",
    in: "query",
    required: true,
    description: "Topic name, or a pattern with + and # by the MQTT convention. May be given several times.",
    style: "form",
    explode: true,
    schema: { type: "array", items: text, minItems: 1 },
  },
  {
    name: "groupId",
    in: "query",
    required: false,
    description: "Chain group; omitted or blank means the default group.",
    schema: text,
  },
  {
    name: "after",
    in: "query",
    required: false,
    description:
      "Start: OFFSET_FIRST, OFFSET_LAST (default), an eventId or an id of an earlier tail to start after it, or a time (RFC 3339, or milliseconds since the epoch).",
    schema: text,
  },
  {
    name: "filter",
    in: "query",
    required: false,
    description:
      'Only events whose content, read as JSON, has these values: $.status == "paid" && $.items[0].count == 2.',
    schema: text,
  },
  {
    name: "format",
    in: "query",
    required: false,
    description: "Form of the events: `interface`, an Event (default), or `cloudevents`, a CloudEvent 1.0.",
    schema: { ...text, enum: ["interface", "cloudevents"], default: "interface" },
  },
  {
    name: "last-event-id",
    in: "header",
    required: false,
    description: "The last id that the client received; takes precedence over `after`.",
    schema: text,
  },
];

/** The path of tails in the OpenAPI document; `refusal` describes the body of each error answer. */
export function toTailPath(refusal: JsonSchema) {
  const refused = (description: string) => ({ description, content: { "application/json": { schema: refusal } } });
  const events = {
    description: "Events as they come, until one side ends the connection. See docs/tail.md.",
    content: {
      "text/event-stream": {
        schema: { ...text, description: "Server-Sent Events: `data` is an Event, or a CloudEvent." },
      },
      "application/x-ndjson": { schema: { ...text, description: "An Event or a CloudEvent on each line." } },
    },
  };
  return {
    get: {
      operationId: "tail",
      summary: "Sends events as they come.",
      tags: ["tail"],
      parameters: tailParameters,
      responses: {
        200: events,
        400: refused("A parameter is wrong."),
        401: refused("The credential is missing or wrong."),
        403: refused("The caller, or its web page, is not allowed."),
        404: refused("There is no such event or group."),
        429: refused("Over a quota."),
        503: refused("Too many tails, or the broker cannot serve now."),
      },
    },
  };
}
