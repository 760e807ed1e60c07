import type { Duplex } from "node:stream";
import { BrokerError, type ErrorName, isBrokerError, toBrokerError } from "@stele/wire";
import type { Caller } from "../../engine/access/caller.ts";
import type { Broker } from "../../engine/broker.ts";
import type { EndReason } from "../../engine/session/peer.ts";
import type { BoundedLog } from "../../lib/bounded-log.ts";
import type { Logger } from "../../lib/logger.ts";
import type { TimeSlices } from "../../lib/time-slices.ts";
import { logIn } from "../callers/log-in.ts";
import { Intake } from "../shared/connection/intake.ts";
import type { ConnectionMemory } from "../shared/connection/memory.ts";
import { parameterError, toFailure } from "../shared/failure.ts";
import { type Accepted, acceptConnect, VersionError } from "./accept.ts";
import { encodeFrame, type FrameFields, HEART_BEAT } from "./codec/encode-frame.ts";
import { type ClientFrame, findHeader, type Headers, type Version, versions } from "./codec/frame.ts";
import { FrameError } from "./codec/frame-error.ts";
import { FrameParser } from "./codec/frame-parser.ts";
import { Dialogue } from "./dialogue.ts";
import { HeartBeats } from "./heart-beats.ts";
import { credentialCheckMs, headBytesMax, headersMax } from "./limits.ts";
import type { StompMetrics } from "./metrics.ts";
import type { StompSettings } from "./settings.ts";

export interface ConnectionParts {
  readonly broker: Pick<
    Broker,
    "authenticate" | "mayConnect" | "admit" | "attach" | "submit" | "submitAll" | "whenRoom" | "exist" | "open"
  >;
  readonly caller: Caller;
  readonly settings: StompSettings;
  readonly metrics: StompMetrics;
  readonly memory: ConnectionMemory;
  readonly logger: Logger;
  /** Log of ended connections. */
  readonly log: BoundedLog;
  /** Name and version of the broker for CONNECTED. */
  readonly server: string;
  readonly newId: () => string;
  readonly slices: TimeSlices;
  readonly onClosed: (connection: Connection) => void;
}

interface AnswerFields extends FrameFields {
  readonly command: Parameters<StompMetrics["answered"]>[0];
}

/** State of a connection whose CONNECT was accepted. */
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

/** Errors for the reasons after which a reconnect would not succeed. All other reasons give 200300 (`busy`), after which clients try again. */
const endErrors: Readonly<Partial<Record<EndReason, ErrorName>>> = {
  "taken-over": "subscriptionHeld",
  removed: "subscriptionNotExist",
  refused: "credentialRefused",
};

/** One STOMP connection, over any transport. */
export class Connection {
  readonly #parts: ConnectionParts;
  readonly #parser: FrameParser;
  readonly #intake: Intake<ClientFrame>;
  readonly #connectTimeout: NodeJS.Timeout;
  #credentialWatch: NodeJS.Timeout | undefined;
  #version: Version = "1.2"; // until one is negotiated
  #opened: Opened | undefined;
  /** Characters of the headers of the frame that is being handled, while it waits. */
  #handledLength = 0;

  constructor(stream: Duplex, parts: ConnectionParts) {
    this.#parts = parts;
    const { memory, settings, slices } = parts;
    this.#parser = new FrameParser({ headBytesMax, headersMax, bodyBytesMax: settings.bodyBytesMax });
    this.#intake = new Intake(stream, {
      memory,
      slices,
      cutter: this.#parser,
      onBytes: () => this.#opened?.beats.received(),
      onUnit: (frame) => this.#take(frame),
      onFailed: (error) => this.#refuseInTurn(error, undefined),
      keptBytes: () => this.#handledLength + (this.#opened?.dialogue.keptBytes ?? 0),
      onDrained: () => this.#opened?.dialogue.wake(),
      onEnded: () => this.#leave(),
      onBroken: () => this.#close(),
      onOutOfMemory: () =>
        this.#fail(new BrokerError("busy", { details: "others need the memory that this connection holds" })),
    });
    const late = (): void => this.#fail(new FrameError("no CONNECT in time"));
    this.#connectTimeout = setTimeout(late, settings.connectTimeoutMs);
  }

  get isBusy(): boolean {
    return this.#intake.isBusy || this.#opened?.dialogue.owesAnswers === true;
  }

  endByStop(): void {
    this.#fail(new EndedError(endReasons.stopping));
  }

  #take(frame: ClientFrame): void {
    const { command } = frame;
    if (this.#opened === undefined) this.#connect(frame);
    else if (command === "CONNECT" || command === "STOMP")
      throw new FrameError("the connection is open already", findHeader(frame.headers, "receipt"));
    else this.#serve(frame, this.#opened);
  }

  #connect(frame: ClientFrame): void {
    if (frame.command !== "CONNECT" && frame.command !== "STOMP") {
      throw new FrameError(`${frame.command} came before CONNECT`, findHeader(frame.headers, "receipt"));
    }
    const { settings, server, newId, broker } = this.#parts;
    const accepted = acceptConnect(frame, { heartBeatMs: settings.heartBeatMs, server, session: newId() });
    this.#version = accepted.version; // set before the login, since an ERROR that refuses the login has this version too
    clearTimeout(this.#connectTimeout);
    const [userName, password] = ["login", "passcode"].map((name) => findHeader(frame.headers, name));
    const login = logIn(broker, this.#parts.caller, { userName, password });
    if (login instanceof Promise) {
      const opened = login.then((caller) => this.#open(caller, accepted));
      this.#whileBusy(opened, frame.headers);
    } else this.#open(login, accepted);
  }

  /** @throws BrokerError 100701, 200207. */
  #open(caller: Caller, { version, heartBeat, headers }: Accepted): void {
    if (this.#intake.isClosed) return;
    const { outbox } = this.#intake;
    this.#parts.broker.admit(caller);
    this.#parser.use(version);
    const dialogue = new Dialogue({
      ...this.#parts,
      caller,
      version,
      outbox,
      reply: (headers) => this.#answer({ command: "RECEIPT", headers }),
      refuse: (error, refused) => this.#refuse(error, refused),
      onSubscriptionEnded: (why) => this.#fail(toEnd(why)),
      onAnswered: () => this.#intake.count(),
      leave: () => this.#close(),
    });
    const beats = new HeartBeats({
      ...heartBeat,
      writtenBytes: () => outbox.writtenBytes,
      send: () => void (outbox.hasRoom && outbox.write(HEART_BEAT)),
      isAwaited: () => this.#intake.isAwaited(),
      onSilent: () => this.#fail(new FrameError("no heart-beat of the client came in time")),
    });
    this.#opened = { dialogue, beats };
    this.#watchCredential(caller);
    this.#answer({ command: "CONNECTED", headers });
  }

  /**
   * Ends the connection when its credential expires or is revoked. Subscriptions would end by themselves, but a connection without any would stay open. While
   * the broker cannot read the keys, the connection stays open, like MQTT connections and tails: the loss of the keys' table must not cut off every consumer.
   */
  #watchCredential(caller: Caller): void {
    if (caller.principal.kind !== "known") return;
    this.#credentialWatch = setInterval(() => {
      try {
        this.#parts.broker.admit(caller);
      } catch (error) {
        if (isBrokerError(error, "credentialRefused")) this.#fail(error);
      }
    }, credentialCheckMs);
  }

  #serve(frame: ClientFrame, { dialogue }: Opened): void {
    try {
      const waiting = dialogue.take(frame);
      if (waiting !== undefined) this.#whileBusy(waiting, frame.headers, findHeader(frame.headers, "receipt"));
    } catch (error) {
      this.#refuseInTurn(error, findHeader(frame.headers, "receipt"));
    }
  }

  /** Handles no further frame until `work`, which keeps the headers of its frame, has ended. */
  #whileBusy(work: Promise<void>, headers: Headers, receipt?: string): void {
    this.#handledLength = headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
    const done = work.finally(() => (this.#handledLength = 0));
    this.#intake.whileBusy(done, (error) => this.#refuseInTurn(error, receipt));
  }

  #answer(fields: AnswerFields, code?: number): void {
    if (this.#intake.isClosed || !this.#intake.outbox.write(encodeFrame(fields, this.#version))) return;
    this.#parts.metrics.answered(fields.command, code);
  }

  /** Refuses a frame after the answers to earlier frames. The ERROR ends the connection, so no further frame is handled. */
  #refuseInTurn(error: unknown, receipt: string | undefined): void {
    if (this.#opened === undefined) {
      this.#fail(error, receipt);
      return;
    }
    this.#intake.stop();
    this.#opened.dialogue.refuse(error, receipt);
  }

  #refuse(error: unknown, receipt: string | undefined): void {
    if (error instanceof BrokerError) toFailure(error, this.#parts.logger, { operation: "STOMP" });
    this.#fail(error, receipt);
  }

  /** Sends the reason in an ERROR, and closes (1.2, "ERROR"). */
  #fail(error: unknown, receipt?: string): void {
    if (this.#intake.isClosed) return;
    const isExpected = error instanceof FrameError || error instanceof VersionError || error instanceof EndedError;
    const { log, logger, caller } = this.#parts;
    const { address } = caller;
    if (isExpected || error instanceof BrokerError) {
      log.info("STOMP connection ended", { reason: error.message, address });
    } else logger.error("STOMP connection failed", { error, address });
    this.#say(error, receipt);
    this.#close();
  }

  #say(error: unknown, receipt: string | undefined): void {
    const failure = toRefusal(error);
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
    this.#answer({ command: "ERROR", headers, body }, failure.code);
  }

  /** When a client has closed its side, answers the frames that it sent, and then ends the connection. */
  #leave(): void {
    if (this.#opened === undefined) this.#close();
    else this.#opened.dialogue.leave();
  }

  #close(): void {
    if (this.#intake.isClosed) return;
    this.#intake.close();
    clearTimeout(this.#connectTimeout);
    clearInterval(this.#credentialWatch);
    this.#opened?.beats.close();
    this.#opened?.dialogue.close();
    this.#parts.onClosed(this);
  }
}

function toEnd(why: EndReason): Error {
  const [name, details] = [endErrors[why], endReasons[why]];
  return name === undefined ? new EndedError(details) : new BrokerError(name, { details });
}

/** The broker ends the connection, and its client is not at fault. */
class EndedError extends Error {
  override readonly name = "EndedError";
}

function toRefusal(error: unknown): BrokerError {
  if (error instanceof FrameError || error instanceof VersionError) return parameterError(error.message);
  if (error instanceof EndedError) return new BrokerError("busy", { details: error.message });
  return toBrokerError(error);
}
