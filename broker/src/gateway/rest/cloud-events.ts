import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import {
  BrokerError,
  parseCloudEvent,
  type PublishedCloudEvent,
  quote,
  readBinaryCloudEvent,
  splitCloudEventBatch,
} from "@stele/wire";
import type { FastifyRequest } from "fastify";
import { withTraceParent } from "../../domain/trace-parent.ts";
import type { PublishCall } from "../../engine/broker.ts";
import { cloudEventBatchMax } from "../limits.ts";
import { BodyRefused, BodyTooLong, type RawBody } from "../shared/collect-body.ts";
import { findCodingRefusal, findEncodingRefusal, parseContentType } from "../shared/content-type.ts";
import { checkWellFormed, decodeUtf8, isJsonObject, parseJson } from "../shared/decode-text.ts";
import { parameterError } from "../shared/failure.ts";
import { measureJson } from "../shared/json-shape.ts";
import type { Slice } from "../shared/rpc/slices.ts";
import type { RestReader } from "./rest-reader.ts";

/** CloudEvents of one request. */
export type CloudEvents =
  | { readonly kind: "one"; readonly call: PublishCall }
  /**
   * Published together, all or none. `read` parses them in slices of time, so that it delays no other work. @throws BrokerError 200001; 200300 if the
   * connection ends meanwhile.
   */
  | { readonly kind: "batch"; readonly read: (slice: Slice) => Promise<readonly PublishCall[]> };

/** Begins the content types of CloudEvents in every format (HTTP protocol binding 1.0.2, section 3). */
const typePrefix = "application/cloudevents";
const structuredType = `${typePrefix}+json`;
const batchType = `${typePrefix}-batch+json`;
const headerPrefix = "ce-";
/** A quoted string (RFC 9110, section 5.6.4). */
const quoted = /^"((?:[^"\\]|\\.)*)"$/;

/** Whether a request carries CloudEvents (HTTP protocol binding 1.0.2, section 3): by their content type, or by the header with their version. */
export function isCloudEventRequest({ method, headers }: Pick<IncomingMessage, "method" | "headers">): boolean {
  if (method !== "POST") return false;
  if (headers[`${headerPrefix}specversion`] !== undefined) return true;
  return headers["content-type"]?.toLowerCase().startsWith(typePrefix) === true;
}

/**
 * The publishes of a request. `reader` reads its query, its trace and its key; `prefix` begins the keys of extensions.
 * @throws BrokerError 100201, 200001; 200300 if the broker stopped reading the body.
 */
export function readCloudEvents(request: FastifyRequest, reader: RestReader, prefix: string): CloudEvents {
  const body = readBody(request);
  refuseRepeated("content-type", request.raw.headersDistinct["content-type"]);
  const { mediaType } = parseContentType(request.headers["content-type"]);
  const isBinary = mediaType !== batchType && mediaType !== structuredType;
  if (isBinary && mediaType.startsWith(typePrefix)) throw formatError(mediaType);
  const refusal = (isBinary ? findCodingRefusal : findEncodingRefusal)(request.headers);
  if (refusal !== undefined) throw parameterError(refusal);
  if (mediaType === batchType) return { kind: "batch", read: splitBatch(body, reader, prefix) };
  const event = isBinary ? readBinary(request, body, prefix) : readStructured(body, prefix);
  const call = toCall(event, reader);
  const extensions = withTraceParent(call.extensions, reader.traceParent(), prefix);
  return { kind: "one", call: { ...call, extensions, key: reader.publishKey() } };
}

/** The error for a CloudEvent in a format other than JSON. Content of an event whose attributes are in headers never has such a content type. */
function formatError(mediaType: string): BrokerError {
  return parameterError(`content type ${quote(mediaType)} is neither ${structuredType} nor ${batchType}`);
}

function readStructured(body: Buffer, prefix: string): PublishedCloudEvent {
  if (!isJsonObject(readJson(body))) throw parameterError("the body is not a CloudEvent: it is not a JSON object");
  return parseCloudEvent(decodeUtf8(body), prefix);
}

function splitBatch(body: Buffer, reader: RestReader, prefix: string) {
  const events = readJson(body);
  if (!Array.isArray(events)) throw parameterError("the body is not a batch of CloudEvents: it is not a JSON array");
  if (events.length > cloudEventBatchMax) {
    throw parameterError(`the batch has ${events.length} CloudEvents, at most ${cloudEventBatchMax}`);
  }
  if (reader.publishKey() !== undefined) throw parameterError("a batch of CloudEvents takes no Idempotency-Key");
  const texts = splitCloudEventBatch(decodeUtf8(body));
  return async (slice: Slice): Promise<readonly PublishCall[]> => {
    const calls: PublishCall[] = [];
    for (const text of texts) {
      if (slice.isOver && !(await slice.next())) {
        throw new BrokerError("busy", { details: "the connection has ended" });
      }
      calls.push(toCall(parseCloudEvent(text, prefix), reader));
    }
    return calls;
  };
}

function readBinary({ raw }: FastifyRequest, body: Buffer, prefix: string): PublishedCloudEvent {
  const attributes = new Map<string, string>();
  for (const [name, values = []] of Object.entries(raw.headersDistinct)) {
    if (!name.startsWith(headerPrefix)) continue;
    refuseRepeated(name, values);
    attributes.set(name.slice(headerPrefix.length), decodeHeader(values[0] ?? ""));
  }
  const declared = attributes.get("datacontenttype");
  const type = raw.headers["content-type"] ?? declared;
  if (declared !== undefined && type !== undefined && spellingOf(declared) !== spellingOf(type)) {
    throw parameterError('not a CloudEvent: the headers "content-type" and "ce-datacontenttype" differ');
  }
  if (type !== undefined) attributes.set("datacontenttype", type);
  return readBinaryCloudEvent(attributes, body, prefix);
}

function refuseRepeated(name: string, values: readonly string[] = []): void {
  if (values.length > 1) throw parameterError(`not a CloudEvent: the header ${quote(name)} is given more than once`);
}

/** A content type in lower case and without spaces: two that differ only in this mean the same. */
function spellingOf(contentType: string): string {
  return contentType.toLowerCase().replaceAll(/[ \t]/g, "");
}

/** The publish of an event to the topic in the query, else to the event's subject. @throws BrokerError 200001. */
function toCall({ subject, content, extensions }: PublishedCloudEvent, reader: RestReader): PublishCall {
  const topic = reader.optionalText("topic") ?? subject;
  if (topic === undefined) throw parameterError('there is no topic: neither "topic" in the query nor a subject');
  for (const [key, value] of extensions) checkWellFormed(value, key);
  return { topic, groupId: reader.optionalText("groupId"), content, extensions };
}

function readJson(body: Buffer): unknown {
  const { refusal } = measureJson(body);
  if (refusal !== undefined) throw parameterError(refusal);
  return parseJson(body);
}

function readBody({ body }: FastifyRequest): Buffer {
  const raw = body as RawBody; // createBodyCollector sets it.
  if (raw instanceof BodyTooLong) {
    throw new BrokerError("contentTooLong", { details: `the request body is over ${raw.bytesMax} bytes` });
  }
  if (raw instanceof BodyRefused) throw raw.error;
  return raw ?? Buffer.alloc(0);
}

/**
 * Decodes a header value (section 3.1.3.2). Senders that follow an earlier version of the binding quote values: the quotes are removed. Many
 * senders do not encode: most of them write UTF-8, which Node reads as Latin-1, and a text that cannot be decoded is otherwise kept as it is.
 */
function decodeHeader(header: string): string {
  const bytes = Buffer.from(header, "latin1");
  const value = isUtf8(bytes) ? bytes.toString() : header;
  const text = quoted.exec(value)?.[1]?.replaceAll(/\\(.)/g, "$1") ?? value;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
