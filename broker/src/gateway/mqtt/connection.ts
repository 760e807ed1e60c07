import type { Duplex } from "node:stream";
import { BrokerError } from "@stele/wire";
import type { Caller } from "../../engine/access/caller.ts";
import type { Attachment } from "../../engine/broker.ts";
import type { EndReason } from "../../engine/session/peer.ts";
import { filterBytes } from "../shared/connection/filter-bytes.ts";
import { Intake } from "../shared/connection/intake.ts";
import { SilenceTimer } from "../shared/connection/silence-timer.ts";
import { logIn } from "../callers/log-in.ts";
import { tlsHandshake } from "../shared/connection/tls/tls-handshake.ts";
import { TopicOpener } from "../shared/connection/topic-opener.ts";
import { toFailure } from "../shared/failure.ts";
import { type Accepted, acceptConnect } from "./accept.ts";
import { decodePacket } from "./codec/decode-packet.ts";
import {
  encodeAcknowledgement,
  encodeConnack,
  encodeReasoned,
  encodeSuback,
  encodeUnsuback,
  PINGRESP,
} from "./codec/encode-packet.ts";
import { type Frame, Framer } from "./codec/framer.ts";
import type { ClientPacket, ConnectPacket, DisconnectPacket, ProtocolVersion } from "./codec/packet.ts";
import {
  PACKET_TOO_LARGE,
  PacketError,
  PROTOCOL_ERROR,
  protocolError,
  UNSUPPORTED_PROTOCOL_VERSION,
} from "./codec/packet-error.ts";
import type { Properties } from "./codec/properties.ts";
import type { ConnectionParts } from "./connection-parts.ts";
import { encodeWithReason } from "./encode-with-reason.ts";
import { type Answer, Inbound } from "./inbound.ts";
import { connectBytesMax, keepAliveFactor } from "./limits.ts";
import { type ClientNames, toLogged } from "./lost-publishes.ts";
import { Outbound } from "./outbound.ts";
import { endReasonCodes, endReasonTexts, reason, toConnectCode, toReasonCode, toReturnCode } from "./reason-codes.ts";
import { subscribeAll, unsubscribeAll } from "./subscriptions.ts";
import { toWillRequest } from "./will.ts";

/** Options of one connection. */
interface ConnectionOwn {
  readonly caller: Caller;
  readonly onClosed: (connection: Connection) => void;
}

/** State of a connection whose CONNECT was accepted. */
interface Opened {
  readonly version: ProtocolVersion;
  readonly accepted: Accepted;
  readonly attachment: Attachment;
  readonly inbound: Inbound;
  readonly outbound: Outbound;
}

/** What the broker knows of a client whose CONNECT it refuses. */
type Refused = Pick<ConnectPacket, "version" | "properties"> & Partial<Pick<ConnectPacket, "clientId">>;

/** First byte of every CONNECT. */
const CONNECT_BYTE = 0x10;

/** One MQTT connection, over any transport. */
export class Connection {
  readonly #parts: ConnectionParts;
  readonly #own: ConnectionOwn;
  readonly #framer: Framer;
  readonly #intake: Intake<Frame>;
  #opened: Opened | undefined;
  #connectTimeout: NodeJS.Timeout | undefined;
  #silence: SilenceTimer | undefined;
  #expirySeconds = 0;
  /** Bytes of the packet that is being handled, while it waits. */
  #handledBytes = 0;

  constructor(stream: Duplex, parts: ConnectionParts, own: ConnectionOwn) {
    this.#parts = parts;
    this.#own = own;
    const { memory, slices, settings } = parts;
    this.#framer = new Framer(Math.min(connectBytesMax, settings.packetBytesMax));
    this.#intake = new Intake(stream, {
      memory,
      slices,
      cutter: this.#framer,
      onBytes: (chunk) => this.#checkFirst(chunk),
      onUnit: (frame) => this.#take(frame),
      onFailed: (error) => this.#fail(error),
      keptBytes: () => this.#keptBytes,
      onDrained: () => this.#opened?.attachment.session.wake(),
      onEnded: () => this.#close(false),
      onBroken: (error) => (error instanceof PacketError ? this.#fail(error) : this.#close(false)),
      onOutOfMemory: () =>
        this.#end("others need the memory that this connection holds (memoryInFlightBytesMax)", reason.quotaExceeded),
    });
    const late = (): void => this.#end("no CONNECT in time (mqttConnectTimeoutMs)");
    this.#connectTimeout = setTimeout(late, settings.connectTimeoutMs);
  }

  get isBusy(): boolean {
    return this.#intake.isBusy;
  }

  endByStop(): void {
    this.#disconnect(reason.shuttingDown);
  }

  get #keptBytes(): number {
    if (this.#opened === undefined) return this.#handledBytes;
    const { inbound, attachment } = this.#opened;
    return (
      this.#handledBytes + inbound.waitingBytes + inbound.unreleasedBytes + filterBytes(attachment.session.filterCount)
    );
  }

  /** Refuses another protocol by its first byte, rather than wait for a whole packet. @throws PacketError. */
  #checkFirst([byte]: Buffer): void {
    if (this.#opened !== undefined || this.#framer.pendingBytes > 0 || byte === CONNECT_BYTE) return;
    if (byte === tlsHandshake) throw protocolError("the client began a TLS handshake; see mqttTlsPort");
    throw protocolError("the first bytes are not a CONNECT");
  }

  #take(frame: Frame): void {
    const packet = decodePacket(frame, this.#opened?.version ?? 4);
    if (this.#opened === undefined) {
      this.#connect(packet, frame.body.length);
      return;
    }
    this.#silence?.heard();
    this.#serve(packet, this.#opened, frame.body.length);
  }

  #write(bytes: Buffer): void {
    this.#intake.outbox.write(bytes);
  }

  #connect(packet: ClientPacket, bytes: number): void {
    if (packet.type !== "connect") throw protocolError(`${packet.type} came before CONNECT`); // [MQTT-3.1.0-1]
    this.#stopWatch();
    this.#whileBusy(async () => {
      try {
        const opened = await this.#open(packet);
        if (this.#intake.isClosed) this.#leaveSession(opened, false);
        else this.#opened = opened;
        this.#framer.allow(this.#parts.settings.packetBytesMax);
      } catch (error) {
        this.#refuse(error, packet);
      }
    }, bytes);
  }

  /**
   * Handles no further packet until `work` has ended. If `work` fails, the connection ends. Pauses after the work if this turn's time slice is used up.
   * `bytes` is the memory that the work keeps of its packet; 0 if another part counts it.
   */
  #whileBusy(work: () => Promise<void>, bytes = 0): void {
    this.#handledBytes = bytes;
    const step = work().then(() => {
      this.#handledBytes = 0;
      return this.#parts.slices.pause();
    });
    this.#intake.whileBusy(step, (error) => this.#fail(error));
  }

  async #open(packet: ConnectPacket): Promise<Opened> {
    const { version, userName, password } = packet;
    const { broker, settings } = this.#parts;
    const client = { ...this.#own.caller, signal: this.#intake.leftWith(this.#own.caller.signal) }; // A client that gives up while it waits gets no session.
    const caller = await logIn(broker, client, { userName, password: password?.toString() });
    const { opensTopics, extensionPrefix: prefix } = settings;
    const accepted = acceptConnect(packet, this.#parts);
    const toConnack = (isSessionPresent: boolean): Buffer =>
      encodeConnack({ isSessionPresent, reasonCode: 0, properties: accepted.properties }, version);
    if (toConnack(false).length > accepted.packetBytesMax) {
      throw new PacketError(PACKET_TOO_LARGE, "the client takes no CONNACK: its Maximum Packet Size is too small");
    }
    const { groupId, clientId } = accepted;
    const opener = new TopicOpener({ broker, caller, isAutomatic: opensTopics });
    const outbound = new Outbound({
      outbox: this.#intake.outbox,
      encodings: this.#parts.encodings,
      version,
      packetBytesMax: accepted.packetBytesMax,
      topicAliasMax: packet.properties.topicAliasMaximum ?? 0,
      settings,
      metrics: this.#parts.metrics,
      onEnded: (why) => this.#endBy(why),
    });
    const request = {
      groupId,
      protocol: "MQTT" as const,
      key: clientId,
      isClean: packet.isClean,
      windowMax: accepted.windowMax,
      will: packet.will && toWillRequest(packet.will, { groupId, prefix, opensTopics }),
      expiryMs: accepted.expirySeconds * 1000,
      onConnected: ({ session, isPresent: isSessionPresent }: Pick<Attachment, "session" | "isPresent">) => {
        outbound.begin(session);
        this.#write(toConnack(isSessionPresent));
        this.#parts.metrics.answered("connack", reason.success);
      },
    };
    this.#expirySeconds = accepted.expirySeconds;
    const attachment = await broker.attach(caller, request, outbound);
    const inbound = new Inbound({
      broker,
      caller,
      opener,
      session: attachment.session,
      groupId,
      settings,
      knowsReceiveMax: version === 5,
      onAnswer: (answer) => this.#answer(answer),
      onReleased: ({ packetId, isKnown }) => {
        const reasonCode = isKnown ? reason.success : reason.packetIdNotFound;
        this.#write(encodeAcknowledgement("pubcomp", { packetId, reasonCode }, version));
      },
      onUnknown: (error) => this.#endUnanswered(error),
      onLost: (topic, error) => this.#parts.losses.lost(topic, error, this.#toNames(clientId)),
    });
    if (!this.#intake.isClosed) this.#watchSilence(accepted.keepAliveSeconds);
    return { version, accepted, attachment, inbound, outbound };
  }

  #watchSilence(keepAliveSeconds: number): void {
    if (keepAliveSeconds === 0) return;
    this.#silence = new SilenceTimer({
      timeoutMs: keepAliveSeconds * 1000 * keepAliveFactor,
      isAwaited: () => this.#intake.isAwaited(),
      onSilent: () =>
        this.#end("the client was silent for one and a half times its keep-alive", reason.keepAliveTimeout),
    });
  }

  /** Stops the timers. Drops the CONNECT timer, which would otherwise stay in memory as long as the connection. */
  #stopWatch(): void {
    clearTimeout(this.#connectTimeout);
    this.#connectTimeout = undefined;
    this.#silence?.close();
  }

  #refuse(error: unknown, { version, properties, clientId }: Refused): void {
    const { maximumPacketSize: packetBytesMax = Infinity } = properties;
    const { logger, log } = this.#parts;
    const reasonCode =
      error instanceof PacketError
        ? error.reasonCode
        : toConnectCode(toFailure(error, logger, { operation: "MQTT connect" }));
    log.info("MQTT connection refused", { reason: messageOf(error), ...this.#toNames(clientId) });
    const code = version === 5 ? reasonCode : toReturnCode(reasonCode);
    this.#parts.metrics.answered("connack", reasonCode);
    if (code !== undefined) {
      const encode = (own: Properties): Buffer =>
        encodeConnack({ isSessionPresent: false, reasonCode: code, properties: own }, version);
      const bytes = encodeWithReason(encode, messageOf(error), packetBytesMax);
      if (bytes.length <= packetBytesMax) this.#write(bytes);
    }
    this.#close(false);
  }

  #serve(packet: ClientPacket, opened: Opened, bytes: number): void {
    const { version, attachment, inbound, outbound } = opened;
    switch (packet.type) {
      case "publish": {
        const waiting = inbound.take(packet);
        if (waiting !== undefined) this.#whileBusy(() => waiting);
        break;
      }
      case "puback":
      case "pubrec":
      case "pubcomp":
        outbound.acknowledge(packet);
        break;
      case "pubrel": {
        const waiting = inbound.release(packet.packetId);
        if (waiting !== undefined) this.#whileBusy(() => waiting);
        break;
      }
      case "subscribe": {
        this.#whileBusy(async () => {
          const reasonCodes = await subscribeAll(packet, { ...this.#parts, attachment, version });
          for (const code of reasonCodes) this.#parts.metrics.answered("suback", code);
          this.#answerWhole(encodeSuback({ packetId: packet.packetId, reasonCodes }, version), opened);
        }, bytes);
        break;
      }
      case "unsubscribe": {
        this.#whileBusy(async () => {
          const reasonCodes = await unsubscribeAll(packet, { ...this.#parts, attachment });
          this.#answerWhole(encodeUnsuback({ packetId: packet.packetId, reasonCodes }, version), opened);
        }, bytes);
        break;
      }
      case "pingreq":
        this.#write(PINGRESP);
        break;
      case "disconnect":
        this.#leave(packet, opened);
        break;
      case "auth":
        throw protocolError("no authentication was begun");
      case "connect":
        throw protocolError("a second CONNECT"); // [MQTT-3.1.0-2]
    }
  }

  /** Sends an answer. Throws if it exceeds the client's limit: the client asked for too much in one packet ([MQTT-3.1.2-24]). */
  #answerWhole(bytes: Buffer, { accepted }: Opened): void {
    if (bytes.length > accepted.packetBytesMax)
      throw new PacketError(PACKET_TOO_LARGE, "an answer exceeds the client's limit");
    this.#write(bytes);
  }

  #leave({ reasonCode, properties: { sessionExpiryInterval } }: DisconnectPacket, { accepted }: Opened): void {
    if (sessionExpiryInterval !== undefined) {
      if (!accepted.asksExpiry && sessionExpiryInterval > 0) {
        throw protocolError("DISCONNECT gives an expiry to a session that CONNECT gave none"); // section 3.14.2.2.2
      }
      this.#expirySeconds = Math.min(sessionExpiryInterval, this.#parts.settings.sessionExpirySecondsMax);
    }
    this.#close(reasonCode === reason.success); // [MQTT-3.1.2-8]: every other reason leaves the will to be published
  }

  #answer({ packetId, qos, reasonCode, error }: Answer): void {
    const opened = this.#opened;
    if (opened === undefined || this.#intake.isClosed) return;
    if (error !== undefined) {
      toFailure(error, this.#parts.logger, { operation: "MQTT publish" });
      if (opened.version === 4) {
        this.#end(`the broker refused a publish, for which 3.1.1 has no answer: ${error.code} ${error.message}`);
        return;
      }
    }
    const { wantsReasons, packetBytesMax } = opened.accepted;
    const reasonString = error !== undefined && wantsReasons ? `${error.code} ${error.message}` : undefined;
    const type = qos === 1 ? "puback" : "pubrec";
    this.#parts.metrics.answered(type, reasonCode);
    const encode = (properties: Properties): Buffer =>
      encodeAcknowledgement(type, { packetId, reasonCode, properties }, opened.version);
    this.#write(encodeWithReason(encode, reasonString, packetBytesMax));
  }

  #endUnanswered(error?: BrokerError): void {
    const why = error === undefined ? "its outcome is unknown" : `${error.code} ${error.message}`;
    this.#end(`the broker can neither acknowledge nor refuse a publish or its release: ${why}`, reason.unspecified);
  }

  #fail(error: unknown): void {
    if (error instanceof PacketError) {
      if (error.reasonCode !== UNSUPPORTED_PROTOCOL_VERSION) this.#end(error.message, error.reasonCode);
      // [MQTT-3.1.2-2] of 3.1.1: a client of an unknown version gets this refusal and no other.
      else if (this.#opened === undefined) this.#refuse(error, { version: 4, properties: {} });
      else this.#end("a second CONNECT"); // [MQTT-3.1.0-2]
    } else {
      this.#parts.logger.error("MQTT connection failed", { error, ...this.#toNames() });
      this.#end("internal error", error instanceof BrokerError ? toReasonCode(error) : reason.unspecified);
    }
  }

  #end(why: string, reasonCode = PROTOCOL_ERROR): void {
    this.#parts.log.info("MQTT connection ended", { reason: why, ...this.#toNames() });
    this.#disconnect(reasonCode);
  }

  /** Sends the reason to an MQTT 5.0 client whose CONNECT was accepted, and closes. */
  #disconnect(reasonCode: number): void {
    this.#parts.metrics.answered("disconnect", reasonCode);
    if (this.#opened?.version === 5) this.#write(encodeReasoned("disconnect", reasonCode));
    this.#close(false);
  }

  #endBy(why: EndReason): void {
    const text = endReasonTexts[why];
    if (text === undefined) this.#disconnect(endReasonCodes[why]);
    else this.#end(text, endReasonCodes[why]);
  }

  /** Names by which an operator finds the client of a log line. */
  #toNames(clientId = this.#opened?.accepted.clientId): ClientNames {
    return { clientId: clientId && toLogged(clientId), address: this.#own.caller.address };
  }

  /** `isRegular`: the client said that it leaves, so its will is not published. */
  #close(isRegular: boolean): void {
    if (this.#intake.isClosed) return;
    this.#intake.close();
    this.#stopWatch();
    this.#opened?.inbound.close();
    if (this.#opened !== undefined) this.#leaveSession(this.#opened, isRegular);
    this.#own.onClosed(this);
  }

  #leaveSession({ attachment }: Opened, isRegular: boolean): void {
    attachment.detach({ expiryMs: this.#expirySeconds * 1000, isRegular });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
