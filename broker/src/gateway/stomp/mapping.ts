import type { Extensions } from "../../domain/event.ts";
import { traceParentKey } from "../../domain/trace-parent.ts";
import type { PublishCall } from "../../engine/broker.ts";
import type { Delivery } from "../../engine/session/peer.ts";
import { parameterError } from "../shared/failure.ts";
import { type ClientFrame, findHeader, type Headers } from "./codec/frame.ts";

/** Headers of the protocol. Any other header of a SEND is the user's, and goes with the event. */
const ownHeaders: ReadonlySet<string> = new Set([
  "destination",
  "content-length",
  "content-type",
  "receipt",
  "transaction",
  "groupId",
  "subscription",
  "subscription-id",
  "message-id",
  "ack",
  "eventId",
]);

/** Names, after the extension prefix, of the extensions for headers whose own names lack the prefix. MQTT uses the same names. */
const extension = { contentType: "content-type", user: "user-" } as const;

/** Header of a SEND, after the prefix, that holds the publish key. */
const publishKey = "publish-key";

/** The publish that a SEND asks for, with copies of all bytes: the publish outlives the received frame. @throws BrokerError 200001 without destination. */
export function toPublishCall({ headers, body }: ClientFrame, prefix: string): PublishCall {
  return {
    topic: requireHeader(headers, "destination"),
    groupId: findHeader(headers, "groupId"),
    content: Buffer.from(body),
    extensions: toExtensions(headers, prefix),
    mayBeEmpty: true,
    key: findHeader(headers, prefix + publishKey),
  };
}

/** @throws BrokerError 200001 if the header is missing. */
export function requireHeader(headers: Headers, name: string): string {
  const value = findHeader(headers, name);
  if (value === undefined) throw parameterError(`the header "${name}" is missing`);
  return value;
}

function toExtensions(headers: Headers, prefix: string): Extensions {
  const extensions = new Map<string, string>();
  for (const [name, value] of headers) {
    const key = toExtensionKey(name, prefix);
    if (key !== undefined && !extensions.has(key)) extensions.set(key, value); // of repeated headers the first counts
  }
  return [...extensions];
}

/** The extension key of a header; undefined for headers that are not part of the event. */
function toExtensionKey(name: string, prefix: string): string | undefined {
  if (name === prefix + publishKey) return undefined;
  if (name.startsWith(prefix)) return name;
  if (name === "content-type") return prefix + extension.contentType;
  if (name === traceParentKey) return prefix + traceParentKey;
  return ownHeaders.has(name) ? undefined : `${prefix}${extension.user}${name}`;
}

export interface MessageOptions {
  readonly prefix: string;
  /** Headers that say which delivery this is. */
  readonly delivery: Headers;
}

/** The headers of the MESSAGE of an event. Of repeated headers the first counts, so those of the protocol come first and no user's header hides them. */
export function toMessageHeaders(
  { event, eventId }: Pick<Delivery, "event" | "eventId">,
  options: MessageOptions,
): Headers {
  const { prefix, delivery } = options;
  const contentType = event.extensions.find(([key]) => key === prefix + extension.contentType)?.[1];
  return [
    ...delivery,
    ["destination", event.topic],
    ["eventId", eventId],
    ...(contentType === undefined ? [] : [["content-type", contentType] as const]),
    ["content-length", String(event.content.byteLength)],
    ...toUserHeaders(event.extensions, prefix),
  ];
}

/** A header for each extension, and a second one under the original name if a SEND's header became the extension. Leaves out names of protocol headers. */
function toUserHeaders(extensions: Extensions, prefix: string): Headers {
  const user = prefix + extension.user;
  const given = extensions
    .filter(([key]) => key.startsWith(user) || key === prefix + traceParentKey)
    .map(([key, value]) => [key.slice((key.startsWith(user) ? user : prefix).length), value] as const);
  return [...extensions, ...given].filter(([name]) => !ownHeaders.has(name));
}
