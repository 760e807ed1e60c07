/** The parts of an event that its CloudEvent contains. */
export interface CloudEventSource {
  readonly eventId: string;
  readonly topic: string;
  /** The number of the event in its topic. */
  readonly sequence: number;
  readonly content: Uint8Array;
  /** The content in Base64; called only if the data is neither text nor JSON. */
  readonly base64: () => string;
  readonly extensions: readonly (readonly [key: string, value: string])[];
  /** The prefix of the extensions' keys. */
  readonly extensionPrefix: string;
  /** `eip155:<chainId>:<topicAddress>`. */
  readonly source: string;
  /** The type, if the event's extensions name none. */
  readonly type: string;
  /** Time of the event's block, in milliseconds since the epoch; undefined if it is unknown. */
  readonly time: number | undefined;
}

/** Sequences of equal length sort as text in the order of their numbers (CloudEvents extension "sequence"). */
const sequenceDigits = 16;

/** Name of the attribute with the extensions that cannot be attributes, as a JSON object. */
export const otherExtensions = "otherextensions";

/** Names of attributes that an extension may not have (CloudEvents 1.0.2, section "Context Attributes"; JSON format, section 3.1). */
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

/** Key, without the prefix, of the extension that names the type of the content: `json`, or a media type. */
export const formatKey = "format";
/**
 * Keys, without the prefix, of the extensions that keep the attributes of a published CloudEvent. Only type and schema are rendered again: the broker sets
 * the others.
 */
export const cloudEventKeys = {
  type: "ce-type",
  source: "ce-source",
  id: "ce-id",
  time: "ce-time",
  subject: "ce-subject",
  dataschema: "ce-dataschema",
} as const;

/** Keys whose extensions get no attribute of their own: a core attribute has their value, or a value that the broker sets instead. */
const ownKeys: ReadonlySet<string> = new Set([formatKey, ...Object.values(cloudEventKeys)]);

/** The first time whose year has five digits, in milliseconds since the epoch. */
const timeEnd = Date.UTC(10_000, 0, 1);
const octets = "application/octet-stream";
const jsonMediaType = "application/json";
/** Of white space, only spaces: an attribute may contain no control character, such as a tab. */
const mediaType = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?: *;[\x20-\x7e]*)?$/;
const jsonType = /^(?:application\/json|[\w.+-]+\/[\w.+-]+\+json)(?:\s*;|$)/i;
const textType = /^text\//i;
/**
 * An absolute URI, perhaps with a fragment (RFC 3986): the only form that libraries accept as `dataschema`. After the scheme comes a host with its port, or a
 * path. {@link URL} checks an IPv6 address.
 */
const uri = new RegExp(
  [
    String.raw`^[a-z][a-z\d+.-]*:`,
    String.raw`(?://(?:(?:[\w.~!$&'()*+,;=:-]|%[\da-f]{2})*@)?(?:\[[\da-f:.]+\]|(?:[\w.~!$&'()*+,;=-]|%[\da-f]{2})*)(?::\d*)?(?=[/?#]|$)|(?!//)(?=[^?#]))`,
    String.raw`(?:[\w.~!$&'()*+,;=:@/-]|%[\da-f]{2})*`,
    String.raw`(?:\?(?:[\w.~!$&'()*+,;=:@/?-]|%[\da-f]{2})*)?`,
    String.raw`(?:#(?:[\w.~!$&'()*+,;=:@/?-]|%[\da-f]{2})*)?$`,
  ].join(""),
  "i",
);
const control = /[\p{Cc}\p{Cs}]/u;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * The context attributes of an event, in order. Names of extensions lose the prefix and all but letters and digits: `svc-order-id` becomes `orderid`. An
 * extension whose name is then taken, or whose value no attribute may have, goes into {@link otherExtensions} under its key.
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
    ...toPair("time", formatTime(time)),
    ["datacontenttype", findMediaType(own(formatKey)) ?? octets],
    ...toPair("dataschema", findUri(own(cloudEventKeys.dataschema))),
    ["sequence", String(event.sequence).padStart(sequenceDigits, "0")],
  ]);
  const others: (readonly [string, string])[] = [];
  for (const extension of extensions) {
    const [key, value] = extension;
    const name = toAttributeName(key, prefix);
    if (name !== undefined && !attributes.has(name) && isLegal(value)) attributes.set(name, value);
    else if (!isCovered(toBareKey(key, prefix), value)) others.push(extension);
  }
  if (others.length > 0) attributes.set(otherExtensions, renderOthers(others));
  return attributes;
}

/** Whether an attribute may have this value (CloudEvents 1.0.2, "Type System"). */
export function isLegal(value: string): boolean {
  return !control.test(value);
}

/** The media type that an extension or attribute names; undefined if it names none. */
export function findMediaType(format: string | undefined): string | undefined {
  if (format === "json") return jsonMediaType;
  return format !== undefined && mediaType.test(format) ? format : undefined;
}

/** The value if it is an absolute URI; else undefined. */
export function findUri(value: string | undefined): string | undefined {
  return value !== undefined && uri.test(value) && URL.canParse(value) ? value : undefined;
}

/** The value if a core attribute may have it; else undefined. */
function findText(value: string | undefined): string | undefined {
  return value !== undefined && value !== "" && isLegal(value) ? value : undefined;
}

/** Whether an extension need not be in `otherextensions`: a core attribute has its value, or a value that the broker sets instead. */
function isCovered(bare: string, value: string): boolean {
  if (bare === formatKey) return findMediaType(value) !== undefined;
  if (bare === cloudEventKeys.type) return findText(value) !== undefined;
  if (bare === cloudEventKeys.dataschema) return findUri(value) !== undefined;
  return ownKeys.has(bare);
}

/** Escapes the control characters that JSON.stringify leaves: JSON may contain them, an attribute may not. */
function renderOthers(others: readonly (readonly [string, string])[]): string {
  return JSON.stringify(Object.fromEntries(others)).replaceAll(
    /[\x7f-\x9f]/g,
    (found) => `\\u00${found.charCodeAt(0).toString(16)}`,
  );
}

/** The time as text; undefined if RFC 3339 cannot express it. It comes from the chain, which may count in other units. */
function formatTime(time: number | undefined): string | undefined {
  return time === undefined || time >= timeEnd ? undefined : new Date(time).toISOString();
}

function toPair(name: string, value: string | undefined): readonly (readonly [string, string])[] {
  return value === undefined ? [] : [[name, value]];
}

/** An event as one JSON object (CloudEvents JSON event format 1.0.2): JSON and text as data, other content in Base64. */
export function renderCloudEvent(event: CloudEventSource): string {
  const attributes = toCloudEventAttributes(event);
  const members = [...attributes].map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
  members.push(renderData(event, attributes.get("datacontenttype") ?? octets));
  return `{${members.join(",")}}`;
}

/** The name of the attribute that an extension becomes; undefined if it cannot be one. */
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
  // In valid JSON, line breaks occur only between values. The event must be one line, for streams of lines.
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
