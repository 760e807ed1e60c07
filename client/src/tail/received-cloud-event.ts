import { isRecord } from "../http-transport.ts";
import { SteleError } from "../stele-error.ts";

/** A CloudEvent 1.0; docs/tail.md explains each attribute. */
export interface CloudEventBody {
  readonly specversion: string;
  /** The eventId. */
  readonly id: string;
  readonly source: string;
  readonly type: string;
  /** The topic. */
  readonly subject: string;
  readonly time?: string;
  readonly datacontenttype?: string;
  readonly data?: unknown;
  readonly data_base64?: string;
  readonly [attribute: string]: unknown;
}

/** An event as a CloudEvent. `text` is the JSON that the broker sent, with all digits of its numbers; `json()` may round them. */
export class ReceivedCloudEvent {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  json(): CloudEventBody {
    return JSON.parse(this.text) as CloudEventBody; // toReceivedCloudEvent checked it.
  }
}

/** @throws SteleError if the text is not a CloudEvent. */
export function toReceivedCloudEvent(value: unknown, text: string): ReceivedCloudEvent {
  if (isRecord(value) && typeof value["id"] === "string" && typeof value["specversion"] === "string") {
    return new ReceivedCloudEvent(text);
  }
  throw new SteleError("the broker sent something that is not a CloudEvent", { retry: false });
}
