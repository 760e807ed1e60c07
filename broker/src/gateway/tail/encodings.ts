import { renderCloudEvent } from "@stele/wire";
import type { Event } from "../../domain/event.ts";
import type { EventOrigin } from "../../engine/broker.ts";
import type { Delivery } from "../../engine/session/peer.ts";
import { toEventBody } from "../shared/results.ts";
import { framings } from "./framing.ts";
import { encodingOverheadBytes, encodingsBytesMax } from "./limits.ts";
import type { TailRequest } from "./tail-request.ts";

/** How the broker writes an event. */
export type Form = Pick<TailRequest, "framing" | "format">;

export interface EncodingsOptions {
  /** Prefix of the keys of extensions. */
  readonly extensionPrefix: string;
  /** The `type` of a CloudEvent whose publisher gave none. */
  readonly cloudEventType: string;
  readonly bytesMax?: number | undefined;
}

/**
 * Encodes each event once for all tails with the same form. Caches an encoding while its event is in memory. If the encodings would take more than
 * `bytesMax`, drops all of them.
 */
export class Encodings {
  readonly #options: EncodingsOptions;
  readonly #bytesMax: number;
  #kept = new WeakMap<Event, Map<string, Buffer>>();
  /** Bytes of the kept encodings, including those whose events have been freed since. */
  #keptBytes = 0;

  constructor(options: EncodingsOptions) {
    this.#options = options;
    this.#bytesMax = options.bytesMax ?? encodingsBytesMax;
  }

  /** The caller must not change the bytes. A CloudEvent needs an origin. */
  encode(delivery: Delivery, { framing, format }: Form, origin?: EventOrigin): Buffer {
    const form = `${framing} ${format} ${origin?.time === undefined}`;
    const known = this.#kept.get(delivery.event)?.get(form);
    if (known !== undefined) return known;
    const json = origin === undefined ? renderEvent(delivery) : this.#renderCloudEvent(delivery, origin);
    const bytes = inOwnMemory(framings[framing].event(delivery.eventId, json));
    this.#keep(bytes, delivery.event, form);
    return bytes;
  }

  #renderCloudEvent({ event, eventId }: Delivery, origin: EventOrigin): string {
    const { extensionPrefix, cloudEventType: type } = this.#options;
    const base64 = (): string => toEventBody({ eventId, ...event }).content;
    return renderCloudEvent({ ...event, ...origin, eventId, extensionPrefix, type, base64 });
  }

  #keep(bytes: Buffer, event: Event, form: string): void {
    const size = bytes.length + encodingOverheadBytes;
    if (this.#keptBytes + size > this.#bytesMax) {
      this.#kept = new WeakMap();
      this.#keptBytes = 0;
    }
    this.#keptBytes += size;
    const encodings = this.#kept.get(event) ?? new Map<string, Buffer>();
    this.#kept.set(event, encodings.set(form, bytes));
  }
}

function renderEvent({ event, eventId }: Delivery): string {
  return JSON.stringify(toEventBody({ eventId, ...event }));
}

/** Node puts short buffers into pools, and a kept buffer would keep its whole pool in memory. */
function inOwnMemory(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}
