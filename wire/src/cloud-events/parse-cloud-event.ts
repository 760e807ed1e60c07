import { BrokerError } from "../errors/broker-error.ts";
import { quote } from "../errors/quote.ts";
import { parseRawPart, readRawParts } from "./raw-json.ts";
import { isTimestamp } from "../times/parse-time.ts";
import {
  cloudEventKeys,
  findMediaType,
  findUri,
  formatKey,
  isLegal,
  otherExtensions,
  toAttributeName,
} from "./render-cloud-event.ts";

/** The publish that a CloudEvent asks for. */
export interface PublishedCloudEvent {
  /** The topic to publish to, unless the call names one. */
  readonly subject: string | undefined;
  readonly content: Uint8Array;
  readonly extensions: readonly (readonly [key: string, value: string])[];
}

/** The members of a JSON object: the unparsed text of each value, by name. */
type RawMembers = ReadonlyMap<string, string>;

const attributeName = /^[a-z0-9]+$/;
const jsonType = /^(?:application\/json|[\w.+-]+\/[\w.+-]+\+json)(?:\s*;|$)/i;
/** Matches Base64 if the text's length is a multiple of four. A repeated group would be slower, and overflow the stack on a long text. */
const base64 = /^[A-Za-z0-9+/]*={0,2}$/;
const integer = /^-?\d+$/;
const required = ["specversion", "id", "source", "type"] as const;
/** Attributes whose values the broker sets itself, each with the key of the extension that keeps the publisher's value. */
const own = new Map<string, string>(Object.entries(cloudEventKeys));

export interface CloudEventReading {
  /**
   * Whether a broker may have rendered the event. If so, its sequence is dropped, and the extensions in `otherextensions` get their keys back. Earlier
   * versions put any text into `dataschema`: a text that is not an absolute URI becomes an extension again, as if it were in `otherextensions`.
   */
  readonly mayBeRendered?: boolean;
}

/**
 * Reads an event in the JSON format of CloudEvents 1.0.2. The content of JSON data is its unchanged text. Keys of extensions begin with `prefix`.
 * @throws BrokerError 200001.
 */
export function parseCloudEvent(
  json: string,
  prefix: string,
  { mayBeRendered = false }: CloudEventReading = {},
): PublishedCloudEvent {
  const parts = readRawParts(json);
  const members: RawMembers = new Map(parts);
  if (members.size < parts.length) throw malformed("one of its members is given more than once");
  const attributes = new Map<string, string>();
  for (const [name, value] of members) {
    if (name === "data" || name === "data_base64" || value === "null") continue;
    attributes.set(name, toAttributeText(name, value));
  }
  const content = toContent(members, attributes);
  if (!mayBeRendered) return toPublished({ attributes, content }, prefix);
  const others = takeOthers(attributes);
  const schema = attributes.get("dataschema") ?? "";
  if (schema !== "" && isLegal(schema) && findUri(schema) === undefined) {
    attributes.delete("dataschema");
    others.push([prefix + cloudEventKeys.dataschema, schema]);
  }
  attributes.delete("sequence");
  const published = toPublished({ attributes, content }, prefix);
  return { ...published, extensions: [...published.extensions, ...others] };
}

/** Removes the attribute `otherextensions` and returns the extensions in it, which cannot be attributes. */
function takeOthers(attributes: Map<string, string>): [string, string][] {
  const text = attributes.get(otherExtensions);
  attributes.delete(otherExtensions);
  if (text === undefined) return [];
  return Array.from(readObject(text), ([key, value]) => [key, String(value)]);
}

function readObject(text: string): Iterable<readonly [string, unknown]> {
  try {
    return Object.entries(JSON.parse(text) as object);
  } catch (error) {
    throw malformed(`the attribute ${otherExtensions} is not a JSON object`, error);
  }
}

/**
 * The events of the JSON batch format, each a text for {@link parseCloudEvent}, so that the caller need not parse a long batch at once.
 * @throws BrokerError 200001.
 */
export function splitCloudEventBatch(json: string): readonly string[] {
  return readRawParts(json).map(([, text]) => {
    if (!text.startsWith("{")) throw malformed("an event of the batch is not an object");
    return text;
  });
}

/**
 * Reads an event in binary mode (HTTP protocol binding 1.0.2, section 3.1). `attributes` has the decoded values by attribute name, without `ce-`.
 * @throws BrokerError 200001.
 */
export function readBinaryCloudEvent(
  attributes: ReadonlyMap<string, string>,
  content: Uint8Array,
  prefix: string,
): PublishedCloudEvent {
  return toPublished({ attributes, content }, prefix);
}

interface ReadEvent {
  readonly attributes: ReadonlyMap<string, string>;
  readonly content: Uint8Array;
}

function toPublished({ attributes, content }: ReadEvent, prefix: string): PublishedCloudEvent {
  for (const name of required) if (!attributes.get(name)) throw malformed(`the attribute ${name} is missing`);
  const version = attributes.get("specversion") ?? "";
  if (version !== "1.0") throw malformed(`specversion is ${quote(version)}, not "1.0"`);
  const extensions: [string, string][] = [];
  for (const [name, value] of attributes) {
    checkAttribute(name, value);
    const key = toKey(name);
    if (key !== undefined) extensions.push([prefix + key, key === formatKey ? toFormat(value) : value]);
  }
  return { subject: attributes.get("subject"), content, extensions };
}

/** @throws BrokerError for an attribute that the broker could not render again, unless the broker sets its own value on purpose. */
function checkAttribute(name: string, value: string): void {
  if (!attributeName.test(name)) throw malformed(`${quote(name)} is not the name of an attribute`);
  if (!isLegal(value)) throw malformed(`the attribute ${name} contains a control character`);
  if (name === "time" && !isTimestamp(value))
    throw malformed(`the attribute time is ${quote(value)}, not an RFC 3339 time`);
  if (name === "dataschema" && findUri(value) === undefined)
    throw malformed(`the attribute dataschema is ${quote(value)}, not an absolute URI`);
  if (name === "datacontenttype" && findMediaType(value) === undefined) {
    throw malformed(`the attribute datacontenttype is ${quote(value)}, not a media type`);
  }
  if (isCore(name)) return;
  if (toAttributeName(name, "") === undefined) {
    throw malformed(`the extension attribute ${name} has another meaning here: leave it out, or give it another name`);
  }
}

function isCore(name: string): boolean {
  return name === "specversion" || name === "datacontenttype" || own.has(name);
}

/** The key, without the prefix, of the extension that keeps an attribute; undefined if none keeps it. */
function toKey(name: string): string | undefined {
  if (name === "specversion") return undefined;
  return name === "datacontenttype" ? formatKey : (own.get(name) ?? name);
}

function toFormat(type: string): string {
  return type === "application/json" ? "json" : type;
}

/** The content that the members give. For data without a type, sets the attribute `datacontenttype` to JSON (JSON format, section 3.1). */
function toContent(members: RawMembers, attributes: Map<string, string>): Uint8Array {
  const [data, encoded] = [members.get("data"), members.get("data_base64")];
  if (data !== undefined && encoded !== undefined) throw malformed("it has both data and data_base64");
  if (encoded !== undefined) return fromBase64(JSON.parse(encoded));
  if (data === undefined) return new Uint8Array();
  const type = attributes.get("datacontenttype") ?? "application/json";
  attributes.set("datacontenttype", type);
  const text = !jsonType.test(type) && data.startsWith('"') ? (JSON.parse(data) as string) : data;
  // Half a surrogate pair has no UTF-8 form: it would come back as another character.
  if (/\p{Surrogate}/u.test(text)) throw malformed("data holds half of a surrogate pair");
  return new TextEncoder().encode(text);
}

function fromBase64(value: unknown): Uint8Array {
  if (typeof value !== "string" || value.length % 4 !== 0 || !base64.test(value)) {
    throw malformed("data_base64 is not Base64");
  }
  const characters = atob(value);
  const bytes = new Uint8Array(characters.length);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = characters.charCodeAt(at);
  return bytes;
}

function toAttributeText(name: string, text: string): string {
  if (integer.test(text)) return text; // a parser would round it beyond 2^53
  const value = parseRawPart(text);
  if (typeof value === "string") return value;
  if (typeof value === "boolean" || Number.isInteger(value)) return String(value);
  throw malformed(`the attribute ${quote(name)} is neither a string nor a boolean nor an integer`);
}

function malformed(details: string, cause?: unknown): BrokerError {
  return new BrokerError("parameterInvalid", { details: `not a CloudEvent: ${details}`, cause });
}
