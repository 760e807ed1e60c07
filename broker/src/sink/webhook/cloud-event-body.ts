import { type CloudEventSource, renderCloudEvent, toCloudEventAttributes } from "@stele/wire";
import type { NotifiedEvent } from "../../ports/sink.ts";
import type { EventPlaces } from "../event-places.ts";

export interface CloudEventOptions {
  /** The prefix of extension keys. */
  readonly extensionPrefix: string;
  /** The type of events that name none. */
  readonly type: string;
  /** Present if events include their place on the chain. */
  readonly places?: EventPlaces | undefined;
}

/** A body with the headers that belong to it. */
export interface EncodedBody {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Bytes of the attributes of a binary CloudEvent in headers. An event with more is structured: common servers accept 8 KiB of headers, with the url. */
const attributeBytesMax = 4_096;
/** Attributes of a binary CloudEvent in headers. An event with more is structured: common servers accept 100 headers. */
const attributesMax = 64;
/** Bytes of a header line besides its name and value: a colon, a space and the line break. */
const headerExtraBytes = 4;

const structuredType = { "content-type": "application/cloudevents+json" };
const batchType = { "content-type": "application/cloudevents-batch+json" };

/** Encodes events as CloudEvents 1.0.2, by the HTTP protocol binding. */
export class CloudEventEncoder {
  readonly #options: CloudEventOptions;

  constructor(options: CloudEventOptions) {
    this.#options = options;
  }

  structured(notified: NotifiedEvent): EncodedBody {
    return { headers: structuredType, body: Buffer.from(renderCloudEvent(this.#toSource(notified))) };
  }

  batch(batch: readonly NotifiedEvent[]): EncodedBody {
    const texts = batch.map((notified) => renderCloudEvent(this.#toSource(notified)));
    return { headers: batchType, body: Buffer.from(`[${texts.join(",")}]`) };
  }

  /** The attributes in headers, the content as the body (section 3.1); structured if the attributes are too long or too many for headers. */
  binary(notified: NotifiedEvent): EncodedBody {
    const { content } = notified.event;
    const headers: Record<string, string> = {};
    const attributes = toCloudEventAttributes(this.#toSource(notified));
    if (attributes.size > attributesMax) return this.structured(notified);
    let bytes = 0;
    for (const [name, value] of attributes) {
      const [header, text] =
        name === "datacontenttype" ? ["content-type", value] : [`ce-${name}`, toHeaderValue(value)];
      headers[header] = text;
      bytes += header.length + text.length + headerExtraBytes;
    }
    if (bytes > attributeBytesMax) return this.structured(notified);
    return { headers, body: Buffer.from(content.buffer, content.byteOffset, content.byteLength) };
  }

  #toSource({ event, eventId, origin }: NotifiedEvent): CloudEventSource {
    const { extensionPrefix, type, places } = this.#options;
    if (origin === undefined) throw new Error("a CloudEvent needs an origin");
    const { topic, sequence, content } = event;
    return {
      eventId,
      topic,
      sequence,
      content,
      base64: () => Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString("base64"),
      extensions: places?.extensionsOf(event) ?? event.extensions,
      extensionPrefix,
      ...origin,
      type,
    };
  }
}

/** Section 3.1.3.2: a space, a double quote, a percent sign and all that ASCII does not print are percent-encoded as UTF-8. */
function toHeaderValue(text: string): string {
  return text.replaceAll(/[^\x21\x23\x24\x26-\x7e]/gu, (character) => encodeURIComponent(character));
}
