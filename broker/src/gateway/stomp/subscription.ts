import type { Attachment, ConnectedSession } from "../../engine/broker.ts";
import type { Delivery, EndReason, Peer } from "../../engine/session/peer.ts";
import type { Outbox } from "../shared/connection/outbox.ts";
import { encodeFrame } from "./codec/encode-frame.ts";
import type { Headers, Version } from "./codec/frame.ts";
import { InFlight } from "./in-flight.ts";
import { settledKeptMin } from "./limits.ts";
import { toMessageHeaders } from "./mapping.ts";

/** Values of SUBSCRIBE's header `ack`. */
export const ackModes = ["auto", "client", "client-individual"] as const;
export type AckMode = (typeof ackModes)[number];

export interface SubscriptionParts {
  /** Its `id`, or its destination if a STOMP 1.0 client gave no `id`. */
  readonly name: string;
  readonly id: string | undefined;
  /** Its identifier in the listing, a UUID. */
  readonly key: string;
  /** Number of the subscription in its connection, from 1. */
  readonly number: number;
  readonly ackMode: AckMode;
  readonly isDurable: boolean;
  /** The parts of its destination. */
  readonly filters: readonly string[];
  /** Events that may be sent and not acknowledged. */
  readonly prefetch: number;
  readonly version: Version;
  readonly extensionPrefix: string;
  readonly outbox: Outbox;
  readonly onEnded: (why: EndReason) => void;
  readonly onSuspended: () => void;
}

/** One SUBSCRIBE of a connection: sends the events of its session as MESSAGEs, and handles the client's ACK and NACK. */
export class Subscription implements Peer {
  readonly parts: SubscriptionParts;
  readonly #inFlight: InFlight;
  #session: ConnectedSession | undefined;
  #attachment: Attachment | undefined;
  #isOpen = false;
  #isPaused = false;

  constructor(parts: SubscriptionParts) {
    this.parts = parts;
    this.#inFlight = new InFlight(Math.max(parts.prefetch, settledKeptMin));
  }

  /** Call it before anything is delivered. */
  begin(session: ConnectedSession): void {
    this.#session = session;
  }

  attached(attachment: Attachment): void {
    this.#attachment = attachment;
  }

  /** Takes events from now on. Call it when the RECEIPT is sent. */
  open(): void {
    if (this.#isPaused) return; // the answers before the RECEIPT were late, and the client has left meanwhile
    this.#isOpen = true;
    this.wake();
  }

  /** Call it when the client can receive more. */
  wake(): void {
    this.#session?.wake();
  }

  get hasRoom(): boolean {
    return this.#isOpen && this.parts.outbox.hasRoom;
  }

  deliver(delivery: Delivery): void {
    const { extensionPrefix: prefix, outbox, version, ackMode } = this.parts;
    const { event, ticket } = delivery;
    const name = this.#toName(delivery);
    const headers = toMessageHeaders(delivery, { prefix, delivery: this.#toHeaders(delivery, name) });
    const { buffer, byteOffset, byteLength } = event.content;
    const body = Buffer.from(buffer, byteOffset, byteLength);
    const bytes = encodeFrame({ command: "MESSAGE", headers, body }, version);
    if (ticket !== undefined && ackMode === "auto") {
      outbox.write(bytes, () => this.#session?.acknowledge(ticket));
      return;
    }
    if (ticket !== undefined) this.#inFlight.give(name, ticket);
    outbox.write(bytes);
  }

  /** Only events of QoS 2 are released; a subscription asks for none. */
  release(): void {}

  ended(why: EndReason): void {
    this.parts.onEnded(why);
  }

  suspended(): void {
    this.parts.onSuspended();
  }

  /** Whether the event that the client settles by this name was sent. */
  knows(name: string): boolean {
    return this.#inFlight.knows(name);
  }

  /** Whether the client still has to settle the event. */
  awaits(name: string): boolean {
    return this.#inFlight.has(name);
  }

  acknowledge(name: string): void {
    for (const ticket of this.#inFlight.settle(name, this.#reach)) this.#session?.acknowledge(ticket);
  }

  /** Handles a NACK: the client could not process the event, and gets it again. */
  reject(name: string): void {
    for (const ticket of this.#inFlight.settle(name, this.#reach)) this.#session?.reject(ticket);
  }

  /** Acknowledgements may follow until the promise settles, even after {@link detach}. The promise must not reject. */
  linger(until: Promise<void>): void {
    this.#attachment?.linger(until);
  }

  /** Takes no more events, even if it is opened later. */
  pause(): void {
    this.#isOpen = false;
    this.#isPaused = true;
  }

  /** Call it when the client sends no more. A durable subscription continues without the connection; resolves once the store has its place. */
  detach(expirySeconds: number): Promise<void> {
    this.pause();
    if (this.parts.ackMode === "auto" && this.parts.isDurable) this.linger(this.parts.outbox.settled());
    const expiryMs = this.parts.isDurable ? expirySeconds * 1000 : 0;
    const written = new Promise<void>((onWritten) =>
      this.#attachment?.detach({ expiryMs, isRegular: true, onWritten }),
    );
    return this.parts.isDurable ? written : Promise.resolve();
  }

  /** Removes the subscription when the client has unsubscribed. Resolves once the removal is on disk. */
  async end(): Promise<void> {
    this.pause();
    await this.#attachment?.end();
  }

  /** An acknowledgement in mode `client` is cumulative (1.2, "SUBSCRIBE ack Header"). */
  get #reach(): "one" | "through" {
    return this.parts.ackMode === "client" ? "through" : "one";
  }

  /**
   * The name by which the client settles the event. Two events may have the same eventId: its digest of the topic is short, and publishers choose the names of
   * topics. Before STOMP 1.2, clients see the name as `message-id`, so it is the eventId unless another event in flight has that eventId.
   */
  #toName({ eventId, ticket }: Delivery): string {
    const isUsable = this.parts.version !== "1.2" && !this.#inFlight.has(eventId);
    return isUsable ? eventId : `${eventId}~${ticket}`;
  }

  #toHeaders({ eventId, ticket }: Delivery, name: string): Headers {
    const { id, key, number, version, ackMode } = this.parts;
    const headers: (readonly [string, string])[] = [];
    if (id !== undefined) headers.push(["subscription", id]);
    headers.push(["message-id", version === "1.2" ? eventId : name]); // 1.2 settles by `ack`
    if (version === "1.2" && ticket !== undefined && ackMode !== "auto") headers.push(["ack", toAckId(number, name)]);
    headers.push(["subscription-id", key]);
    return headers;
  }
}

function toAckId(number: number, name: string): string {
  return `${number}-${name}`;
}

/** Parses a value of MESSAGE's header `ack`; undefined if it is malformed. */
export function parseAckId(text: string): { readonly number: number; readonly name: string } | undefined {
  const found = /^([1-9]\d{0,8})-(.+)$/s.exec(text);
  return found === null ? undefined : { number: Number(found[1]), name: found[2] ?? "" };
}
