import type { IncomingMessage } from "node:http";
import { quote } from "@stele/wire";
import { parameterError } from "../shared/failure.ts";
import { findQuery } from "../shared/find-query.ts";
import { ContentFilter } from "./content-filter.ts";
import { tailTopicsMax } from "./limits.ts";

/** How the broker writes events: each as an SSE event, or as a line of JSON. */
export type Framing = "sse" | "ndjson";

/** The form of an event. `interface`: as `getEvent` returns it; `cloudevents`: a CloudEvent. */
const formats = ["interface", "cloudevents"] as const;
export type Format = (typeof formats)[number];

/** The parameters of a tail. */
export interface TailRequest {
  readonly groupId: string | undefined;
  readonly topics: readonly string[];
  readonly after: string | undefined;
  readonly lastEventId: string | undefined;
  /** Undefined if the client wants every event. */
  readonly filter: ContentFilter | undefined;
  readonly framing: Framing;
  readonly format: Format;
}

/** Names of the parameters. `topic` may be repeated. The broker refuses any other name: a misspelt `filter` would let every event through. */
const names = ["topic", "groupId", "after", "filter", "format"] as const;
type Name = (typeof names)[number];

/**
 * Reads the query and headers of a tail. @throws BrokerError 200001 if a parameter is unknown or malformed, if a parameter other than `topic` is repeated, or
 * if there are no topics or too many.
 */
export function readTailRequest({ url = "", headers }: Pick<IncomingMessage, "url" | "headers">): TailRequest {
  const query = parseQuery(findQuery(url));
  for (const name of query.keys()) {
    if (!names.includes(name as Name)) throw parameterError(`there is no parameter ${quote(name)}`);
    if (name !== "topic" && query.getAll(name).length > 1)
      throw parameterError(`${quote(name)} is given more than once`);
  }
  const topics = query.getAll("topic");
  if (topics.length === 0) throw parameterError('"topic" is missing');
  if (topics.length > tailTopicsMax) throw parameterError(`${topics.length} topics, at most ${tailTopicsMax}`);
  const filter = query.get("filter");
  const lastEventId = headers["last-event-id"];
  return {
    groupId: query.get("groupId") ?? undefined,
    topics,
    after: query.get("after") ?? undefined,
    lastEventId: typeof lastEventId === "string" ? lastEventId : undefined,
    filter: filter === null ? undefined : ContentFilter.parse(filter),
    framing: framingOf(headers.accept),
    format: formatOf(query.get("format")),
  };
}

/** `URLSearchParams` reads a malformed escape as other text: the tail would silently leave out the events that the client asked for. */
function parseQuery(query: string): URLSearchParams {
  for (const pair of query.split("&")) {
    try {
      decodeURIComponent(pair);
    } catch (cause) {
      const [name = ""] = pair.split("=", 1);
      throw parameterError(`the parameter ${quote(name)} has a malformed escape or is not valid UTF-8`, cause);
    }
  }
  return new URLSearchParams(query);
}

function formatOf(text: string | null): Format {
  if (text === null || text === "") return "interface";
  const format = formats.find((one) => one === text);
  if (format === undefined) throw parameterError(`"format" is ${formats.join(" or ")}, not ${quote(text)}`);
  return format;
}

const eventStream = "text/event-stream";
const lineTypes: ReadonlySet<string> = new Set(["application/x-ndjson", "application/ndjson", "application/jsonl"]);

/** The framing of the first known type in `Accept`; SSE if there is none. */
function framingOf(accept: string | undefined): Framing {
  const types = (accept ?? "").split(",").map((range) => range.split(";", 1)[0]?.trim().toLowerCase() ?? "");
  const first = types.find((type) => type === eventStream || lineTypes.has(type));
  return first === undefined || first === eventStream ? "sse" : "ndjson";
}
