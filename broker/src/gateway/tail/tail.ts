import type { Duplex } from "node:stream";
import type { Position } from "../../domain/position.ts";
import type { Attachment, EventOrigin, OriginSource, TailStart } from "../../engine/broker.ts";
import { placeIdOf } from "../../engine/session/tails/tail-start.ts";
import type { Delivery, EndReason, Peer, TailSession } from "../../engine/session/peer.ts";
import { closeGraceMs } from "../shared/connection/limits.ts";
import type { UnreadBytes } from "../shared/connection/memory.ts";
import { Outbox } from "../shared/connection/outbox.ts";
import type { Encodings } from "./encodings.ts";
import { framings } from "./framing.ts";
import { stalledBeatsMax, stuckBeatsMax } from "./limits.ts";
import type { TailRequest } from "./tail-request.ts";

/** Why a tail ended: a reason of the engine, or `stalled` if its client has read nothing for too long. */
export type TailEnd = EndReason | "stalled";

export interface TailParts {
  readonly request: TailRequest;
  readonly encodings: Encodings;
  readonly unread: UnreadBytes;
  readonly retryMs: number;
  /** Called once; the reason is undefined if the client left. */
  readonly onEnded: (tail: Tail, why: TailEnd | undefined) => void;
}

/** One open tail. It takes events as long as its client reads them, and reports its position. */
export class Tail implements Peer {
  readonly #stream: Duplex;
  readonly #parts: TailParts;
  readonly #outbox: Outbox;
  #session: TailSession | undefined;
  #attachment: Pick<Attachment, "end"> | undefined;
  /** Every event up to this position was delivered to the tail. */
  #given: Position | undefined;
  /** The newest event, if the filter left it out. */
  #leftOut: Delivery | undefined;
  #origins: OriginSource | undefined;
  /** An event whose origin is being loaded. */
  #awaited: Delivery | undefined;
  readonly #closing = new AbortController();
  #isSilent = true;
  #stalledBeats = 0;
  #stuckBeats = 0;
  #isOpen = true;

  /** `stream` carries the body of the answer. The tail leaves it alone until {@link begin}. */
  constructor(stream: Duplex, parts: TailParts) {
    this.#stream = stream;
    this.#parts = parts;
    this.#outbox = new Outbox(stream, parts.unread);
  }

  /** Call it once, after the headers are written and before anything is delivered. */
  begin(session: TailSession, { id, position, isRolledBack }: TailStart, origins: OriginSource): void {
    this.#session = session;
    this.#origins = origins;
    this.#given = position;
    this.#stream.on("drain", () => this.#drained());
    this.#stream.on("error", () => this.#close(undefined));
    this.#stream.on("close", () => this.#close(undefined));
    if (this.#stream.destroyed) this.#close(undefined); // the close event has already fired
    this.#write(this.#frames.begin(id, this.#parts.retryMs));
    if (isRolledBack) this.#resync(position, id);
  }

  /** Keeps the attachment to the engine. If the client has already left, ends the session at once. */
  attached(attachment: Pick<Attachment, "end">): void {
    this.#attachment = attachment;
    if (!this.#isOpen) void this.#endSession();
  }

  get hasRoom(): boolean {
    return this.#awaited === undefined && this.#outbox.hasRoom;
  }

  deliver(delivery: Delivery): void {
    const { request } = this.#parts;
    this.#given = delivery.event.position;
    if (request.filter?.matches(delivery.event) === false) {
      this.#leftOut = delivery;
      return;
    }
    this.#leftOut = undefined;
    this.#isSilent = false;
    if (request.format === "interface") return this.#send(delivery);
    const origin = this.#origins?.find(delivery.event);
    if (origin === undefined) void this.#sendLater(delivery);
    else this.#send(delivery, origin);
  }

  /** Only events of QoS 2 are released; a tail asks for none. */
  release(): void {}

  rolledBack(to: Position, generation: number): void {
    if (this.#given !== undefined && this.#given > to) this.#resync(to, placeIdOf(to, generation));
  }

  ended(why: EndReason): void {
    this.end(why);
  }

  /** Sends the reason, and closes. */
  end(why: TailEnd): void {
    if (!this.#isOpen) return;
    this.#write(this.#frames.notice("end", JSON.stringify({ reason: why })));
    this.#close(why);
  }

  /** Call it at regular intervals. Sends a heartbeat if the tail was silent, and ends a tail that is stalled or stuck. */
  beat(): void {
    this.#stuckBeats = this.#session?.isStuck === true ? this.#stuckBeats + 1 : 0;
    if (this.#stuckBeats >= stuckBeatsMax) return this.end("failed");
    const hasMoved = this.#outbox.hasMoved();
    if (!this.#outbox.hasRoom) {
      this.#stalledBeats = hasMoved ? 0 : this.#stalledBeats + 1;
      if (this.#stalledBeats >= stalledBeatsMax) this.#cut();
      return;
    }
    this.#stalledBeats = 0;
    if (this.#isSilent) this.#write(this.#frames.heartbeat(this.#leftOut?.eventId));
    this.#isSilent = true;
  }

  #send(delivery: Delivery, origin?: EventOrigin): void {
    const { request, encodings } = this.#parts;
    this.#outbox.write(encodings.encode(delivery, request, origin));
  }

  /** Sends an event once its origin is loaded, unless a rollback removes the event first. The tail takes no other event meanwhile. Never rejects. */
  async #sendLater(delivery: Delivery): Promise<void> {
    this.#awaited = delivery;
    try {
      const origin = await this.#origins?.load(delivery.event, this.#closing.signal);
      if (this.#awaited !== delivery) return;
      this.#awaited = undefined;
      this.#send(delivery, origin);
      this.#session?.wake();
    } catch {
      if (this.#awaited === delivery) this.end("failed"); // the client reconnects, and by then the store may be reachable
    }
  }

  get #frames() {
    return framings[this.#parts.request.framing];
  }

  #write(text: string): void {
    if (text !== "") this.#outbox.write(Buffer.from(text));
  }

  #resync(to: Position, id: string): void {
    this.#given = to;
    this.#leftOut = undefined;
    this.#awaited = undefined;
    this.#write(this.#frames.notice("resync", JSON.stringify({ after: placeIdOf(to), id }), id));
  }

  #drained(): void {
    this.#outbox.count();
    this.#session?.wake();
  }

  /** Closes without an end event, which the client would not read. */
  #cut(): void {
    this.#close("stalled");
    this.#stream.destroy();
  }

  #close(why: TailEnd | undefined): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#awaited = undefined;
    this.#closing.abort();
    this.#outbox.close();
    this.#stream.end();
    setTimeout(() => this.#stream.destroy(), closeGraceMs).unref();
    this.#parts.onEnded(this, why);
    void this.#endSession();
  }

  /** Ends the session of the tail. If the store cannot remove the session now, the engine removes it later. */
  async #endSession(): Promise<void> {
    await this.#attachment?.end().catch(() => {});
  }
}
