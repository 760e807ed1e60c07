/** What a CloudEvent says of an event of the broker. */
export interface CloudEventSource {
  readonly eventId: string;
  readonly topic: string;
  /** The number of the event in its topic. */
  readonly sequence: number;
  readonly content: Uint8Array;
  /** The content in Base64; asked for only where the data is not text. */
  readonly base64: () => string;
  readonly extensions: readonly (readonly [key: string, value: string])[];
  /** What each of these keys begins with. */
  readonly extensionPrefix: string;
  /** `eip155:<chainId>:<topicAddress>`. */
  readonly source: string;
  /** Unless the event names its own. */
  readonly type: string;
  /** Time of the event's block, in milliseconds since the epoch; undefined where nobody knows it now. */
  readonly time: number | undefined;
}

/** Sequences of equal length sort as text in the order of their numbers (CloudEvents extension "sequence"). */
const sequenceDigits = 16;

/** The attribute that holds the extensions that become none, as a JSON object. */
export const otherExtensions = "otherextensions";

/** Attributes that an extension may not take (CloudEvents 1.0.2, section "Context Attributes"; JSON format, section 3.1). */
const taken: ReadonlySet<string> = new Set([
  "specversion",
  "id",
  "source",
  "type",
  "subject",
  "time",
  "datacontenttype",
  "dataschema",
  "data",
  "database64",
  "sequence",
  otherExtensions,
]);

/** The extension that names the type of the content, after the prefix; `json`, or a media type. */
export const formatKey = "format";
/** Extensions by which a publish says what the CloudEvent says of itself. Only type and schema are said again: the rest has become that of the broker. */
export const cloudEventKeys = {
  type: "ce-type",
  source: "ce-source",
  id: "ce-id",
  time: "ce-time",
  subject: "ce-subject",
  dataschema: "ce-dataschema",
} as const;

/** Keys that are no attributes of their own: core attributes stand for them. */
const ownKeys: ReadonlySet<string> = new Set([formatKey, ...Object.values(cloudEventKeys)]);

const octets = "application/octet-stream";
const jsonMediaType = "application/json";
const mediaType = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:\s*;[\x20-\x7e]*)?$/;
const jsonType = /^(?:application\/json|[\w.+-]+\/[\w.+-]+\+json)(?:\s*;|$)/i;
const textType = /^text\//i;
const control = /[\p{Cc}\p{Cs}]/u;
const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * The context attributes of an event, in order. Names of extensions lose the prefix and all but letters and digits: `svc-order-id` is `orderid`. One that
 * would then be an attribute already, or has a value that none may have, stands in {@link otherExtensions} under its own key.
 */
export function toCloudEventAttributes(event: CloudEventSource): ReadonlyMap<string, string> {
  const { extensions, extensionPrefix: prefix, time } = event;
  const own = (key: string): string | undefined => extensions.find(([name]) => name === prefix + key)?.[1];
  const attributes = new Map([
    ["specversion", "1.0"],
    ["id", event.eventId],
    ["source", event.source],
    ["type", findText(own(cloudEventKeys.type)) ?? event.type],
    ["subject", event.topic],
    ...(time === undefined ? [] : [["time", new Date(time).toISOString()] as const]),
    ["datacontenttype", findMediaType(own(formatKey)) ?? octets],
    ...toPair("dataschema", findText(own(cloudEventKeys.dataschema))),
    ["sequence", String(event.sequence).padStart(sequenceDigits, "0")],
  ]);
  const others: (readonly [string, string])[] = [];
  for (const extension of extensions) {
    const [key, value] = extension;
    const name = toAttributeName(key, prefix);
    if (name !== undefined && !attributes.has(name) && isLegal(value)) attributes.set(name, value);
    else if (!isSaid(toBareKey(key, prefix), value)) others.push(extension);
  }
  if (others.length > 0) attributes.set(otherExtensions, renderOthers(others));
  return attributes;
}

/** Whether a value may stand in an attribute (CloudEvents 1.0.2, "Type System"). */
export function isLegal(value: string): boolean {
  return !control.test(value);
}

/** The media type that an extension or attribute means; undefined for a text that is none. */
export function findMediaType(format: string | undefined): string | undefined {
  if (format === "json") return jsonMediaType;
  return format !== undefined && mediaType.test(format) ? format : undefined;
}

/** A text that a core attribute may have. */
function findText(value: string | undefined): string | undefined {
  return value !== undefined && value !== "" && isLegal(value) ? value : undefined;
}

/** Whether an attribute says what the extension says, or the broker's own attribute stands in its place by intent. */
function isSaid(bare: string, value: string): boolean {
  if (bare === formatKey) return findMediaType(value) !== undefined;
  if (bare === cloudEventKeys.type || bare === cloudEventKeys.dataschema) return findText(value) !== undefined;
  return ownKeys.has(bare);
}

/** Control characters beyond ASCII stand unescaped in JSON, but not in an attribute. */
function renderOthers(others: readonly (readonly [string, string])[]): string {
  return JSON.stringify(Object.fromEntries(others)).replaceAll(
    /[\x7f-\x9f]/g,
    (found) => `\\u00${found.charCodeAt(0).toString(16)}`,
  );
}

function toPair(name: string, value: string | undefined): readonly (readonly [string, string])[] {
  return value === undefined ? [] : [[name, value]];
}

/** An event as one JSON object (CloudEvents JSON event format 1.0.2): data as it is where it is JSON or text, else in Base64. */
export function renderCloudEvent(event: CloudEventSource): string {
  const attributes = toCloudEventAttributes(event);
  const members = [...attributes].map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
  members.push(renderData(event, attributes.get("datacontenttype") ?? octets));
  return `{${members.join(",")}}`;
}

/** The name of the attribute that an extension becomes; undefined for one that becomes none. */
export function toAttributeName(key: string, prefix: string): string | undefined {
  const bare = toBareKey(key, prefix);
  const name = bare.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
  return ownKeys.has(bare) || name === "" || taken.has(name) ? undefined : name;
}

function toBareKey(key: string, prefix: string): string {
  return key.startsWith(prefix) ? key.slice(prefix.length) : key;
}

function renderData({ content, base64 }: CloudEventSource, type: string): string {
  const text = jsonType.test(type) || textType.test(type) ? decodeText(content) : undefined;
  if (text !== undefined && textType.test(type)) return `"data":${JSON.stringify(text)}`;
  // Line breaks stand between values only; the event is to be one line, for streams of lines.
  if (text !== undefined && isJson(text)) return `"data":${text.replaceAll(/[\r\n]/g, " ")}`;
  return `"data_base64":${JSON.stringify(base64())}`;
}

function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
