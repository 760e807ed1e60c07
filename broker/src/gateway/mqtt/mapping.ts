import { type Extensions, isCommitted } from "../../domain/event.ts";
import { isMarkedRetained, retainedMark, sessionMarks } from "../../domain/session-filter.ts";
import { traceParentKey } from "../../domain/trace-parent.ts";
import { toTokenKey } from "../../engine/publish/token-key.ts";
import type { Delivery } from "../../engine/session/peer.ts";
import type { PublishFields } from "./codec/encode-packet.ts";
import type { PublishPacket } from "./codec/packet.ts";
import type { Properties, UserProperty } from "./codec/properties.ts";
import { toEventBody } from "../shared/results.ts";
import type { MqttSettings } from "./settings.ts";

/**
 * Names of extensions, after the extension prefix, that hold what MQTT says about a message besides its topic and payload. A user property whose
 * name has the prefix becomes the extension of that name. The W3C trace keeps its name after the prefix, other user properties come after `user-`.
 */
const key = {
  ...sessionMarks,
  expiresAt: "expires-at",
  format: "payload-format",
  contentType: "content-type",
  responseTopic: "response-topic",
  correlationData: "correlation-data",
  user: "user-",
} as const;

type PublishLike = Pick<PublishPacket, "qos" | "isRetained" | "properties">;

export interface IncomingOptions {
  readonly prefix: string;
  /** Time of day, in milliseconds. */
  readonly now: number;
  /** Names the session that publishes, if it does not want its own events. */
  readonly origin?: string | undefined;
}

/** The extensions of the event that a PUBLISH becomes. */
export function toExtensions(packet: PublishLike, { prefix, now, origin }: IncomingOptions): Extensions {
  const { properties } = packet;
  const extensions: [string, string][] = [];
  const add = (name: string, value: string | undefined): void => {
    if (value !== undefined) extensions.push([prefix + name, value]);
  };
  // An event without the mark has QoS 1.
  if (packet.qos !== 1) add(key.qos, String(packet.qos));
  if (packet.isRetained) add(key.retain, retainedMark);
  const { messageExpiryInterval: expiry, payloadFormatIndicator: format } = properties;
  if (expiry !== undefined) add(key.expiresAt, String(now + expiry * 1000));
  if (format !== undefined) add(key.format, String(format));
  add(key.contentType, properties.contentType);
  add(key.responseTopic, properties.responseTopic);
  add(key.correlationData, properties.correlationData?.toString("base64"));
  add(key.origin, origin);
  for (const [name, value] of properties.userProperties ?? []) {
    const isTrace = name === traceParentKey;
    extensions.push([name.startsWith(prefix) ? name : `${prefix}${isTrace ? "" : key.user}${name}`, value]);
  }
  return extensions;
}

export interface OutgoingOptions {
  readonly prefix: string;
  /** Time of day, in milliseconds. */
  readonly now: number;
  /** Whether user properties give the event's identifier, sequence number and block. `too-long`: they would, but the packet has no room for them. */
  readonly hasEventPlace: boolean | "too-long";
  readonly payload: MqttSettings["payload"];
}

/** The PUBLISH of an event; undefined if the event has expired and was not sent before. */
export function toPublish(delivery: Delivery, options: OutgoingOptions): PublishFields | undefined {
  const { event, qos, ticket, isRepeated, filters } = delivery;
  const properties = toProperties(delivery, options);
  if (properties === undefined) return undefined;
  const isRetained = isMarkedRetained(event, options.prefix);
  return {
    topic: event.topic,
    payload: options.payload === "event" ? toEventPayload(delivery) : toPayload(event.content),
    qos,
    packetId: ticket ?? 0,
    isDuplicate: isRepeated,
    isRetained: delivery.isRetained === true || (isRetained && filters.some((one) => one.isRetainAsPublished)),
    properties,
  };
}

function toPayload({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

/** The event as JSON, including the values that user properties have in other packets. */
function toEventPayload(delivery: Delivery): Buffer {
  const { event } = delivery;
  const eventId = isCommitted(event) ? delivery.eventId : "";
  return Buffer.from(JSON.stringify(toEventBody({ eventId, ...event })));
}

/** The properties of the PUBLISH of an event; undefined if the event has expired and was not sent before. */
function toProperties(delivery: Delivery, options: OutgoingOptions): Properties | undefined {
  const { event, filters, isRepeated } = delivery;
  const { prefix, now, hasEventPlace } = options;
  const read = (name: string): string | undefined => findExtension(event.extensions, prefix + name);
  const leftSeconds = secondsLeft(read(key.expiresAt), now);
  const isExpired = leftSeconds !== undefined && leftSeconds <= 0;
  if (isExpired && !isRepeated) return undefined; // [MQTT-3.3.2-5]; but an event that was sent before is repeated ([MQTT-4.3.3-7], [MQTT-4.4.0-1])
  const isRaw = options.payload === "raw";
  const format = isRaw ? read(key.format) : "1";
  const identifiers = filters.flatMap(({ identifier }) => (identifier === undefined ? [] : [identifier]));
  const user = toUserProperties(event.extensions, prefix);
  // Leaves out user properties of these names: a client that republishes an event may have copied the place of that event.
  const own =
    hasEventPlace === false ? user : user.filter(([name]) => !placeKeys.some((place) => prefix + place === name));
  const place = hasEventPlace === true && isCommitted(event) ? toPlace(delivery, prefix) : [];
  return {
    userProperties: isRaw ? [...place, ...own] : [],
    ...(leftSeconds !== undefined && { messageExpiryInterval: Math.max(leftSeconds, 0) }),
    ...(format !== undefined && { payloadFormatIndicator: format === "1" ? 1 : 0 }),
    ...toContentType(isRaw ? read(key.contentType) : "application/json"),
    ...toResponseTopic(read(key.responseTopic)),
    ...toCorrelation(read(key.correlationData)),
    ...(identifiers.length > 0 && { subscriptionIdentifiers: identifiers }),
  };
}

/** Names of the user properties that give the place of an event, after the extension prefix. */
const placeKeys = ["eventId", "sequence", "block"] as const;

function toPlace({ event, eventId }: Delivery, prefix: string): UserProperty[] {
  const place = { eventId, sequence: String(event.sequence), block: String(event.blockNumber) };
  return placeKeys.map((name) => [prefix + name, place[name]]);
}

/** Extensions that do not become user properties; most have a property of their own. */
const ownProperties = [
  key.qos,
  key.retain,
  key.expiresAt,
  key.format,
  key.contentType,
  key.responseTopic,
  key.correlationData,
  key.origin, // names a session, which other clients must not learn
];

function toUserProperties(extensions: Extensions, prefix: string): UserProperty[] {
  const user = prefix + key.user;
  const toPropertyName = (name: string): string => {
    if (name === prefix + traceParentKey) return traceParentKey;
    return name.startsWith(user) ? name.slice(user.length) : name;
  };
  return (
    extensions
      // Leaves out the token: a client that republishes an event would copy it, and the broker refuses a token in a publish with a key.
      .filter(([name]) => name !== toTokenKey(prefix) && !ownProperties.some((own) => prefix + own === name))
      .map(([name, value]): UserProperty => [toPropertyName(name), value])
      .filter(([name, value]) => isText(name) && isText(value))
  );
}

/** Longest message expiry, in seconds. */
const expirySecondsMax = 2 ** 32 - 1;

/** Seconds until a time in milliseconds. Undefined if the text, which any producer may have written, is not such a time. */
function secondsLeft(expiresAt: string | undefined, now: number): number | undefined {
  if (expiresAt === undefined || !/^\d{1,15}$/.test(expiresAt)) return undefined;
  return Math.min(Math.ceil((Number(expiresAt) - now) / 1000), expirySecondsMax);
}

/** Longest text and binary value, in bytes: the length is written in 16 bits (MQTT 5.0, sections 1.5.4 and 1.5.6). */
const valueBytesMax = 65_535;

/** Whether MQTT can carry a text: without U+0000 ([MQTT-1.5.4-2]) and not too long. Other producers may write any text. */
function isText(value: string): boolean {
  return !value.includes("\0") && Buffer.byteLength(value) <= valueBytesMax;
}

function toContentType(contentType: string | undefined): Properties {
  return contentType === undefined || !isText(contentType) ? {} : { contentType };
}

/**
 * Leaves out a response topic that is empty or has a wildcard ([MQTT-4.7.3-1], [MQTT-3.3.2-14]): clients would end their connection, and get the event again.
 * Other producers may write one.
 */
function toResponseTopic(responseTopic: string | undefined): Properties {
  return responseTopic === undefined || !isText(responseTopic) || /^$|[+#]/.test(responseTopic)
    ? {}
    : { responseTopic };
}

function toCorrelation(base64: string | undefined): Properties {
  if (base64 === undefined) return {};
  const correlationData = Buffer.from(base64, "base64");
  return correlationData.length <= valueBytesMax ? { correlationData } : {};
}

function findExtension(extensions: Extensions, name: string): string | undefined {
  return extensions.find(([known]) => known === name)?.[1];
}
