import { createHash } from "node:crypto";
import type { Publication } from "@stele/client";
import { otherExtensions } from "@stele/wire";
import { UsageError } from "./io.ts";

/** Attributes that a publication has places of its own for. The broker makes the others anew. */
const ownAttributes: ReadonlySet<string> = new Set([
  "specversion",
  "id",
  "source",
  "type",
  "subject",
  "time",
  "datacontenttype",
  "data",
  "data_base64",
  "dataschema",
  "sequence",
  otherExtensions,
]);
const jsonType = "application/json";

/** What all events of one command share. With `once`, source and id are the key of an event. */
export interface CloudEventOptions extends Omit<Publication, "content"> {
  /** How keys of extensions begin. */
  readonly prefix: string;
}

/** Reads a CloudEvent 1.0 in its JSON format, so that the tail gives the same one back (docs/tail.md, CloudEvents). @throws UsageError if it is none. */
export function fromCloudEvent(line: string, { topic, once, extensions, prefix }: CloudEventOptions): Publication {
  const event = parse(line);
  const { specversion, id, source, type, subject, dataschema, datacontenttype: mediaType = jsonType } = event;
  const texts = [id, source, type, mediaType];
  if (specversion !== "1.0" || !texts.every((text) => typeof text === "string")) {
    throw new UsageError(`not a CloudEvent 1.0: ${line.slice(0, 80)}`);
  }
  const name = topic === "" ? subject : topic;
  if (typeof name !== "string" || name === "")
    throw new UsageError(`give a topic: this CloudEvent has no subject: ${line.slice(0, 80)}`);
  const others = Object.entries(event).filter(([attribute]) => !ownAttributes.has(attribute));
  return {
    topic: name,
    content: toContent(event),
    extensions: {
      [`${prefix}format`]: mediaType === jsonType ? "json" : String(mediaType),
      [`${prefix}ce-type`]: String(type),
      ...(typeof dataschema === "string" && { [`${prefix}ce-dataschema`]: dataschema }),
      ...Object.fromEntries(others.map(([attribute, value]) => [`${prefix}${attribute}`, String(value)])),
      ...toOtherExtensions(event[otherExtensions]),
      ...extensions,
    },
    once:
      once === true
        ? createHash("sha256")
            .update(JSON.stringify([source, id]))
            .digest("hex")
        : once,
  };
}

/** Those that a tail put into one attribute, by their keys. */
function toOtherExtensions(text: unknown): Readonly<Record<string, string>> {
  if (typeof text !== "string") return {};
  return Object.fromEntries(Object.entries(parse(text)).map(([key, value]) => [key, String(value)]));
}

function toContent({
  data,
  data_base64: base64,
  datacontenttype: type,
}: Readonly<Record<string, unknown>>): string | Uint8Array {
  if (typeof base64 === "string") return Buffer.from(base64, "base64");
  const isText = typeof data === "string" && type !== undefined && type !== jsonType;
  return isText ? data : JSON.stringify(data ?? null);
}

function parse(line: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as Readonly<Record<string, unknown>>; // Of JSON.
  } catch {}
  throw new UsageError(`not a JSON object: ${line.slice(0, 80)}`);
}
