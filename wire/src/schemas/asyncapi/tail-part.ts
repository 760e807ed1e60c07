import { cloudEventSchema } from "../cloud-event.ts";
import type { JsonSchema } from "../json-schema.ts";
import { eventSchema } from "../results.ts";
import {
  tailEndLineSchema,
  tailEndSchema,
  tailFieldsSchema,
  tailResyncLineSchema,
  tailResyncSchema,
} from "../tail-notices.ts";
import { tailParameters } from "../tail-path.ts";
import type { AsyncMessage, AsyncPart } from "./async-document.ts";

const contentType = "application/json";
const resync = "A reorganisation of the chain removed what came after this place.";
const end = "The broker ends the tail.";

const eventMessages = {
  tailEvent: {
    contentType,
    summary: "An event: `data` of SSE, or a line of NDJSON.",
    payload: eventSchema,
    headers: tailFieldsSchema,
  },
  tailCloudEvent: {
    contentType: "application/cloudevents+json",
    summary: "An event with `format=cloudevents`.",
    payload: cloudEventSchema,
    headers: tailFieldsSchema,
  },
} as const satisfies Record<string, AsyncMessage>;

const sseNotices = {
  tailResync: { contentType, summary: `SSE event \`resync\`: ${resync}`, payload: tailResyncSchema },
  tailEnd: { contentType, summary: `SSE event \`end\`: ${end}`, payload: tailEndSchema },
} as const satisfies Record<string, AsyncMessage>;

const ndjsonNotices = {
  tailResyncLine: { contentType, summary: resync, payload: tailResyncLineSchema },
  tailEndLine: { contentType, summary: end, payload: tailEndLineSchema },
} as const satisfies Record<string, AsyncMessage>;

const events = Object.keys(eventMessages);
const bindings = { http: { method: "GET", query: toQuery(), bindingVersion: "0.3.0" } };

/** One long HTTP response, with events as they come. */
export const tailPart: AsyncPart = {
  kind: "http",
  channels: {
    tail: {
      address: "/tail",
      title: "Tail",
      description: "Events as they come, over one HTTP response; see docs/tail.md. Below the pathname of the server.",
      messages: [...events, ...Object.keys(sseNotices), ...Object.keys(ndjsonNotices)],
    },
  },
  operations: {
    tailEvents: {
      action: "send",
      channel: "tail",
      messages: [...events, ...Object.keys(sseNotices)],
      summary: "Sends events as Server-Sent Events.",
      description: "Without `Accept`, or with `text/event-stream`. Comments, and ids without data, call no listener.",
      bindings,
    },
    tailLines: {
      action: "send",
      channel: "tail",
      messages: [...events, ...Object.keys(ndjsonNotices)],
      summary: "Sends events as lines of JSON.",
      description: "With `Accept: application/x-ndjson`. An empty line is a heartbeat.",
      bindings,
    },
  },
  messages: { ...eventMessages, ...sseNotices, ...ndjsonNotices },
};

/** The query as one object; `topic` may be given several times. */
function toQuery(): JsonSchema {
  const inQuery = tailParameters.filter((parameter) => parameter.in === "query");
  return {
    type: "object",
    required: inQuery.filter(({ required }) => required).map(({ name }) => name),
    properties: Object.fromEntries(inQuery.map(({ name, schema, description }) => [name, { ...schema, description }])),
    additionalProperties: false,
  };
}
