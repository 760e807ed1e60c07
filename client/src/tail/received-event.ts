import type { EventBody } from "@stele/wire";
import { isRecord } from "../http-transport.ts";
import { fromBase64 } from "../lib/base64.ts";
import { SteleError } from "../stele-error.ts";

/** An event as the broker sends it. `content` is Base64; the methods decode it. */
export class ReceivedEvent implements EventBody {
  readonly topic: string;
  readonly content: string;
  readonly extensions: Record<string, string>;
  readonly eventId: string;

  constructor({ topic, content, extensions, eventId }: EventBody) {
    this.topic = topic;
    this.content = content;
    this.extensions = extensions;
    this.eventId = eventId;
  }

  bytes(): Uint8Array<ArrayBuffer> {
    return fromBase64(this.content);
  }

  /** The content as UTF-8 text, including a byte order mark at its start; invalid bytes become U+FFFD. */
  text(): string {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.bytes());
  }

  /** The content as JSON, without a byte order mark (RFC 8259, section 8.1). @throws SyntaxError if the content is not JSON. */
  json(): unknown {
    return JSON.parse(new TextDecoder().decode(this.bytes()));
  }
}

/** @throws SteleError if the value is not an event. */
export function toReceivedEvent(value: unknown): ReceivedEvent {
  if (isRecord(value)) {
    const { topic, content, extensions, eventId } = value;
    if ([topic, content, eventId].every((text) => typeof text === "string") && isRecord(extensions)) {
      return new ReceivedEvent(value as EventBody); // Checked above, except for the values of the extensions.
    }
  }
  throw new SteleError("the broker sent something that is not an event", { retry: false });
}
