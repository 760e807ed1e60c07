import type { Duplex } from "node:stream";
import { BrokerError, toBrokerError } from "@stele/wire";
import type { Caller } from "../../engine/access/caller.ts";
import type { Broker } from "../../engine/broker.ts";
import type { EndReason } from "../../engine/session/peer.ts";
import type { Logger } from "../../lib/logger.ts";
import type { TimeSlices } from "../../lib/time-slices.ts";
import { logIn } from "../callers/log-in.ts";
import { closeGraceMs } from "../shared/connection/limits.ts";
import type { ConnectionMemory, UnfinishedInput } from "../shared/connection/memory.ts";
import { Outbox } from "../shared/connection/outbox.ts";
import { parameterError } from "../shared/failure.ts";
import { type Accepted, acceptConnect, VersionError } from "./accept.ts";
import { encodeFrame, type FrameOrder, HEART_BEAT } from "./codec/encode-frame.ts";
import { type ClientFrame, findHeader, type Headers, type Version, versions } from "./codec/frame.ts";
import { FrameError } from "./codec/frame-error.ts";
import { FrameParser } from "./codec/frame-parser.ts";
import { Dialogue } from "./dialogue.ts";
import { HeartBeats } from "./heart-beats.ts";
import { expiryCheckMs, expiryWaitMsMax, headBytesMax, headersMax } from "./limits.ts";
import type { StompMetrics } from "./metrics.ts";
import type { Profile } from "./profile.ts";
import type { StompSettings } from "./settings.ts";

export interface ConnectionParts {
  readonly broker: Pick<
    Broker,
    "authenticate" | "admit" | "attach" | "submit" | "submitAll" | "whenRoom" | "exist" | "open"
  >;
  readonly caller: Caller;
  readonly settings: StompSettings;
  readonly profile: Profile;
  readonly metrics: StompMetrics;
  readonly memory: ConnectionMemory;
  readonly logger: Logger;
  /** Name and version of the broker, as CONNECTED has it. */
  readonly server: string;
  readonly newId: () => string;
  readonly slices: TimeSlices;
  readonly onClosed: (connection: Connection) => void;
}

/** What a connection has once its CONNECT was accepted. */
interface Opened {
  readonly dialogue: Dialogue;
  readonly beats: HeartBeats;
}

const endReasons: Readonly<Record<EndReason, string>> = {
  "taken-over": "another connection has subscribed with the same subscription identifier",
  removed: "the subscription was removed",
  stopping: "the broker stops",
  failed: "an event could not be delivered",
  stale: "this node serves no subscriptions now",
  refused: "the credential of the connection is not valid any more",
};

/** One STOMP connection: bytes in, frames out, whatever carries them. */
export class Connection {
  readonly #stream: Duplex;
  readonly #parts: ConnectionParts;
  readonly #parser: FrameParser;
  readonly #outbox: Outbox;
  readonly #unfinished: UnfinishedInput;
  readonly #connectTimeout: NodeJS.Timeout;
  #expiry: NodeJS.Timeout | undefined;
  #version: Version = "1.2"; // until one is negotiated
  #opened: Opened | undefined;
  #isClosed = false;
  /** Whether the client sends no more. */
  #isEnded = false;
  /** Whether a received frame is still in work, so that no more is read. */
  #isBusy = false;

  constructor(stream: Duplex, parts: ConnectionParts) {
    this.#stream = stream;
    this.#parts = parts;
    const { memory, settings } = parts;
    this.#outbox = new Outbox(stream, memory.unread);
    this.#unfinished = memory.hold({
      socket: stream,
      end: () => this.#fail(new BrokerError("busy", { details: "others need the memory of its unfinished frame" })),
    });
    this.#parser = new FrameParser({ headBytesMax, headersMax, bodyBytesMax: settings.bodyBytesMax });
    const late = (): void => this.#fail(new FrameError("no CONNECT in time"));
    this.#connectTimeout = setTimeout(late, settings.connectTimeoutMs);
    stream.on("data", (chunk: Buffer) => this.#receive(chunk));
    stream.on("drain", () => this.#drained());
    stream.on("error", () => this.#close());
    stream.on("close", () => this.#close());
    stream.on("end", () => this.#ended());
  }

  endByStop(): void {
    this.#fail(new EndedError(endReasons.stopping));
  }

  #receive(chunk: Buffer): void {
    if (this.#isClosed) return;
    this.#opened?.beats.received();
    this.#handle(() => this.#parser.push(chunk, (frame) => this.#take(frame)));
  }

  #resume(): void {
    this.#isBusy = false;
    if (this.#isClosed) return;
    this.#handle(() => this.#parser.resume((frame) => this.#take(frame)));
    if (this.#isEnded) this.#ended();
  }

  /** The client sends no more; what it sent before is served first. */
  #ended(): void {
    this.#isEnded = true;
    if (!this.#isBusy) this.#leave();
  }

  #handle(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#fail(error);
    }
    if (this.#isClosed) return;
    this.#count();
    // Nothing more is read from a client that waits for us, or that does not read.
    if (this.#isBusy || !this.#outbox.hasRoom) this.#stream.pause();
    else this.#stream.resume();
  }

  /** Counts what it keeps against what all connections share. */
  #count(): void {
    if (!this.#isClosed) this.#unfinished.hold(this.#parser.heldBytes + (this.#opened?.dialogue.keptBytes ?? 0));
  }

  #drained(): void {
    this.#outbox.count();
    this.#opened?.dialogue.wake();
    if (!this.#isBusy && !this.#isClosed) this.#stream.resume();
  }

  /** Whether the next frame may be taken. */
  #take(frame: ClientFrame): boolean {
    const { command } = frame;
    if (this.#opened === undefined) this.#connect(frame);
    else if (command === "CONNECT" || command === "STOMP") throw new FrameError("the connection is open already");
    else this.#serve(frame, this.#opened);
    if (this.#isBusy || this.#isClosed) return false;
    const pause = this.#parts.slices.pause();
    if (pause !== undefined) this.#whileBusy(pause, undefined);
    return pause === undefined;
  }

  #connect(frame: ClientFrame): void {
    if (frame.command !== "CONNECT" && frame.command !== "STOMP") {
      throw new FrameError(`${frame.command} came before CONNECT`);
    }
    const { profile, server, newId, broker } = this.#parts;
    const accepted = acceptConnect(frame, { profile, server, session: newId() });
    this.#version = accepted.version; // also of an ERROR that refuses the login
    clearTimeout(this.#connectTimeout);
    const [userName, password] = ["login", "passcode"].map((name) => findHeader(frame.headers, name));
    const login = logIn(broker, this.#parts.caller, { userName, password });
    if (login instanceof Promise) {
      const opened = login.then((caller) => this.#open(caller, accepted));
      this.#whileBusy(opened, undefined);
    } else this.#open(login, accepted);
  }

  /** @throws BrokerError 100701, 200207. */
  #open(caller: Caller, { version, heartBeat, headers }: Accepted): void {
    if (this.#isClosed) return;
    this.#parts.broker.admit(caller);
    this.#parser.use(version);
    const dialogue = new Dialogue({
      ...this.#parts,
      caller,
      version,
      outbox: this.#outbox,
      reply: (order) => this.#write(order),
      refuse: (error, refused) => this.#refuse(error, refused),
      onSubscriptionEnded: (why) => this.#fail(toEnd(why)),
      onAnswered: () => this.#count(),
      leave: () => this.#close(),
    });
    const beats = new HeartBeats({
      ...heartBeat,
      writtenBytes: () => this.#outbox.writtenBytes,
      send: () => (this.#outbox.hasRoom ? this.#outbox.write(HEART_BEAT) : undefined),
      isDeaf: () => this.#isBusy || (!this.#outbox.hasRoom && this.#outbox.hasMoved()),
      onSilent: () => this.#fail(new FrameError("no heart-beat of the client came in time")),
    });
    this.#opened = { dialogue, beats };
    this.#watchExpiry(caller);
    this.#write({ command: "CONNECTED", headers });
    this.#parts.metrics.answered("CONNECTED");
  }

  /** A connection without a subscription would outlive its credential. The broker has the last word: its clock never goes back. */
  #watchExpiry(caller: Caller): void {
    const { principal } = caller;
    if (principal.kind !== "known" || principal.expiresAt === undefined) return;
    const check = (): void => {
      try {
        this.#parts.broker.admit(caller);
        this.#expiry = setTimeout(check, expiryCheckMs);
      } catch (error) {
        this.#fail(error);
      }
    };
    const leftMs = principal.expiresAt - Date.now();
    this.#expiry = setTimeout(check, Math.min(Math.max(leftMs, 0), expiryWaitMsMax));
  }

  #serve(frame: ClientFrame, { dialogue }: Opened): void {
    try {
      const waiting = dialogue.take(frame);
      if (waiting !== undefined) this.#whileBusy(waiting, findHeader(frame.headers, "receipt"));
    } catch (error) {
      this.#refuse(error, findHeader(frame.headers, "receipt"));
    }
  }

  /** Takes no further frame until `work` has ended. */
  #whileBusy(work: Promise<void>, receipt: string | undefined): void {
    this.#isBusy = true;
    work.catch((error: unknown) => this.#refuse(error, receipt)).finally(() => this.#resume());
  }

  #write(order: FrameOrder): void {
    if (!this.#isClosed) this.#outbox.write(encodeFrame(order, this.#version));
  }

  /** A frame of the client cannot be served. */
  #refuse(error: unknown, receipt: string | undefined): void {
    const isOfFrame = error instanceof BrokerError && this.#opened !== undefined;
    if (isOfFrame && !this.#parts.profile.closesOnRefusal) this.#say(error, receipt);
    else this.#fail(error, receipt);
  }

  /** Says why in an ERROR, and closes. */
  #fail(error: unknown, receipt?: string): void {
    if (this.#isClosed) return;
    const isExpected = error instanceof FrameError || error instanceof VersionError || error instanceof EndedError;
    const { logger } = this.#parts;
    if (isExpected || error instanceof BrokerError) logger.info("STOMP connection ended", { reason: error.message });
    else logger.error("STOMP connection failed", { error });
    this.#say(error, receipt);
    this.#close();
  }

  #say(error: unknown, receipt: string | undefined): void {
    const failure = toFailure(error);
    const receiptId = receipt ?? (error instanceof FrameError ? error.receipt : undefined);
    const body = Buffer.from(failure.message);
    const headers: Headers = [
      ["message", failure.message],
      ["code", String(failure.code)],
      ...(error instanceof VersionError ? [["version", versions.join(",")] as const] : []),
      ...(receiptId === undefined ? [] : [["receipt-id", receiptId] as const]),
      ["content-type", "text/plain"],
      ["content-length", String(body.length)],
    ];
    this.#write({ command: "ERROR", headers, body });
    this.#parts.metrics.answered("ERROR", failure.code);
  }

  /** The client leaves. What it sent is still answered. */
  #leave(): void {
    if (this.#opened === undefined) this.#close();
    else this.#opened.dialogue.leave();
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#connectTimeout);
    clearTimeout(this.#expiry);
    this.#unfinished.release();
    this.#outbox.close();
    this.#opened?.beats.close();
    this.#opened?.dialogue.close();
    this.#stream.end();
    this.#stream.resume(); // else a client that still sends keeps the socket half open
    setTimeout(() => this.#stream.destroy(), closeGraceMs).unref();
    this.#parts.onClosed(this);
  }
}

function toEnd(why: EndReason): Error {
  const details = endReasons[why];
  return why === "refused" ? new BrokerError("credentialRefused", { details }) : new EndedError(details);
}

/** The broker ends the connection for no fault of its client. */
class EndedError extends Error {
  override readonly name = "EndedError";
}

function toFailure(error: unknown): BrokerError {
  if (error instanceof FrameError || error instanceof VersionError) return parameterError(error.message);
  if (error instanceof EndedError) return new BrokerError("busy", { details: error.message });
  return toBrokerError(error);
}
