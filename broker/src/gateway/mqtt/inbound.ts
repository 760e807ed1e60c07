import { type BrokerError, isBrokerError, toBrokerError } from "@stele/wire";
import { isTopicName, topicCharactersMax } from "../../domain/topic-name.ts";
import type { Caller } from "../../engine/access/caller.ts";
import type { Broker, OnSettled, PublishCall, PublishOutcome } from "../../engine/broker.ts";
import type { ConnectedSession } from "../../engine/broker.ts";
import { copyOf } from "../../lib/copy-of.ts";
import { createDeferred, type Deferred } from "../../lib/deferred.ts";
import { publishBytes } from "../shared/connection/publish-bytes.ts";
import { connectionEnded, Submitter } from "../shared/connection/submitter.ts";
import type { TopicOpener } from "../shared/connection/topic-opener.ts";
import type { PublishPacket } from "./codec/packet.ts";
import { PacketError, protocolError } from "./codec/packet-error.ts";
import { unreleasedPublishBytes } from "./limits.ts";
import { toExtensions } from "./mapping.ts";
import { reason, toReasonCode } from "./reason-codes.ts";
import type { MqttSettings } from "./settings.ts";
import { LazyMap, LazySet } from "../../lib/lazy-collections.ts";

/** The answer to a publish of QoS 1 or 2. */
export interface Answer {
  readonly packetId: number;
  readonly qos: 1 | 2;
  readonly reasonCode: number;
  /** Why the publish was refused; undefined if it was not. */
  readonly error: BrokerError | undefined;
}

export interface InboundParts {
  readonly broker: Pick<Broker, "submit" | "submitAll" | "whenRoom" | "release" | "pass">;
  readonly caller: Caller;
  readonly opener: TopicOpener;
  readonly session: ConnectedSession;
  readonly groupId: string | undefined;
  readonly settings: Pick<MqttSettings, "extensionPrefix" | "receiveMax" | "topicAliasMax" | "qos0">;
  /** Whether the client knows Receive Maximum. An MQTT 3.1.1 client does not: the broker makes it wait. */
  readonly knowsReceiveMax: boolean;
  /** Called once for each publish, in order of arrival ([MQTT-4.6.0-2], [MQTT-4.6.0-3]). */
  readonly onAnswer: (answer: Answer) => void;
  /** Called when the client may use a QoS 2 packet identifier for another publish. */
  readonly onReleased: (release: { readonly packetId: number; readonly isKnown: boolean }) => void;
  /** Called when the broker can neither acknowledge nor refuse a publish or release: because of `error`, or because the outcome is unknown. */
  readonly onUnknown: (error?: BrokerError) => void;
  /** Called when a publish of QoS 0, which gets no answer, was refused. */
  readonly onLost: (topic: string, error: BrokerError) => void;
}

interface Pending {
  readonly packetId: number;
  readonly qos: 1 | 2;
  outcome: PublishOutcome | undefined;
}

/** The publishes of one connection: each is committed before it is acknowledged. */
export class Inbound {
  readonly #parts: InboundParts;
  readonly #submitter: Submitter;
  readonly #aliases = new LazyMap<number, string>();
  /** Unanswered publishes of QoS 1 and 2, in order of arrival. */
  #pending: Pending[] = [];
  /** Number of failed publishes whose answers wait for the answers to earlier publishes. */
  #unreported = 0;
  /** Set while a publish waits until the client knows of every failure. */
  #reported: Deferred<void> | undefined;
  /** Bytes of the publish that waits for `#reported`, or for its subscribers. */
  #heldBytes = 0;
  #isClosed = false;
  /** Number of unanswered publishes of QoS 1, of a client that knows Receive Maximum. */
  #unacknowledged = 0;
  /** Set while a client that does not know Receive Maximum has that many unanswered publishes. */
  #credit: Deferred<void> | undefined;
  /** Number of releases that wait for the store. */
  #releases = 0;
  /** Packet identifiers of this connection's QoS 2 publishes that the client has not released, of a client that knows Receive Maximum. */
  readonly #unreleased = new LazySet<number>();

  constructor(parts: InboundParts) {
    this.#parts = parts;
    this.#submitter = new Submitter(parts);
  }

  /** Bytes of the publish that waits to be submitted, to get its place in the order, or for its subscribers. */
  get waitingBytes(): number {
    return this.#submitter.waitingBytes + this.#heldBytes;
  }

  /** Memory that publishes of QoS 2 take until the client has released them, in bytes. */
  get unreleasedBytes(): number {
    return this.#parts.session.inbound.size * unreleasedPublishBytes;
  }

  /** Call it when the connection has ended. */
  close(): void {
    this.#isClosed = true;
    this.#reported?.resolve();
    this.#credit?.resolve();
    this.#submitter.close();
  }

  /**
   * Takes a publish. Take nothing else until the returned promise resolves, to keep the order. The publish may have to wait for:
   * - the opening of its topic, or room in the group
   * - the outcome of the same message on an earlier connection
   * - the answer to an earlier publish that failed: the client may repeat that publish before this one
   * - its many subscribers
   * - answers to earlier publishes of a client that does not know Receive Maximum
   * @throws PacketError.
   */
  take(packet: PublishPacket): Promise<void> | undefined {
    const taken = this.#take(packet);
    const { knowsReceiveMax, settings } = this.#parts;
    if (knowsReceiveMax || this.#pending.length < settings.receiveMax) return taken;
    this.#credit ??= createDeferred();
    const { promise } = this.#credit;
    return taken === undefined ? promise : taken.then(() => promise);
  }

  #take(packet: PublishPacket): Promise<void> | undefined {
    const topic = this.#resolveTopic(packet);
    const { qos, packetId } = packet;
    const { session } = this.#parts;
    if (qos > 0 && this.#parts.knowsReceiveMax) this.#takeCredit(packet);
    const pending: Pending | undefined = qos === 0 ? undefined : { packetId, qos, outcome: undefined };
    if (pending !== undefined) this.#pending.push(pending);
    if (pending?.qos === 2) {
      const earlier = session.inbound.get(packetId);
      if (earlier !== undefined) return this.#join(pending, earlier);
    }
    const call = this.#toCall(packet, topic);
    if (qos === 0 && !packet.isRetained && this.#parts.settings.qos0 === "live") {
      return this.#pass(call);
    }
    const settle = this.#remember(pending, topic);
    const isResent = call.key !== undefined && packet.isDuplicate;
    const submit = (): Promise<void> | undefined =>
      isResent ? this.#submitAndWait(call, settle) : this.#submitter.submit(call, settle);
    return this.#unreported === 0 || pending === undefined
      ? submit()
      : this.#submitWhenReported(call, { submit, settle });
  }

  async #submitWhenReported(
    call: PublishCall,
    { submit, settle }: { readonly submit: () => Promise<void> | undefined; readonly settle: OnSettled },
  ): Promise<void> {
    this.#reported ??= createDeferred();
    this.#heldBytes = publishBytes(call);
    await this.#reported.promise;
    this.#heldBytes = 0;
    if (this.#isClosed) settle({ status: "REFUSED", error: connectionEnded() });
    else await submit();
  }

  /** Passes a publish to connected subscribers without committing it. Never called for a retained publish, which is committed. */
  #pass(call: PublishCall): Promise<void> | undefined {
    const { broker, caller, onLost } = this.#parts;
    const onFailed = (error: unknown): void => onLost(call.topic, toBrokerError(error));
    try {
      const passed = broker.pass(caller, call);
      return passed && this.#passLater(call, passed.catch(onFailed));
    } catch (error) {
      onFailed(error);
      return undefined;
    }
  }

  async #passLater(call: PublishCall, passed: Promise<void>): Promise<void> {
    this.#heldBytes = publishBytes(call);
    await passed;
    this.#heldBytes = 0;
  }

  /** Resolves when the publish has settled. Reports an uncertain outcome as TIMEOUT, because an earlier connection may have published the message. */
  #submitAndWait(call: PublishCall, settle: OnSettled): Promise<void> {
    const { promise, resolve } = createDeferred<void>();
    void this.#submitter.submit(call, (outcome) => {
      settle(isUncertain(outcome) ? { topic: call.topic, eventId: "", status: "TIMEOUT" } : outcome);
      resolve();
    });
    return promise;
  }

  /**
   * Handles the release of a QoS 2 publish by the client. If the session is stored, the store frees the key of the publish before {@link
   * InboundParts.onReleased} is called. Returns a promise if too many releases wait for the store. Take nothing else until the promise resolves.
   */
  release(packetId: number): Promise<void> | undefined {
    const { session, settings, onReleased } = this.#parts;
    this.#unreleased.delete(packetId);
    const isKnown = session.inbound.delete(packetId);
    if (!session.isStored) {
      onReleased({ packetId, isKnown });
      return undefined;
    }
    this.#releases += 1;
    const released = this.#releaseStored(packetId, isKnown);
    return this.#releases < settings.receiveMax ? undefined : released;
  }

  /** Never rejects. */
  async #releaseStored(packetId: number, isKnown: boolean): Promise<void> {
    const { session, broker, caller, groupId, onReleased, onUnknown } = this.#parts;
    try {
      const wasTaken = await broker.release(caller, { groupId, session: session.keys, key: String(packetId) });
      onReleased({ packetId, isKnown: isKnown || wasTaken });
    } catch (error) {
      onUnknown(toBrokerError(error));
    } finally {
      this.#releases -= 1;
    }
  }

  /**
   * Counts a publish against Receive Maximum: QoS 1 until PUBACK, QoS 2 until PUBREL or a refusal (section 4.9). A repeat of a QoS 2 publish within the
   * connection does not count again, but the number of repeats is limited. @throws PacketError if a limit is exceeded.
   */
  #takeCredit({ qos, packetId }: PublishPacket): void {
    const { receiveMax } = this.#parts.settings;
    if (this.#pending.length >= 2 * receiveMax) {
      throw new PacketError(
        reason.receiveMaximumExceeded,
        "too many repeats of publishes wait for an answer (mqttReceiveMax)",
      );
    }
    if (qos === 2 && this.#unreleased.has(packetId)) return;
    if (this.#unacknowledged + this.#unreleased.size >= receiveMax) {
      throw new PacketError(
        reason.receiveMaximumExceeded,
        `more than ${receiveMax} publishes are under way (mqttReceiveMax)`,
      );
    }
    if (qos === 2) this.#unreleased.add(packetId);
    else this.#unacknowledged += 1;
  }

  /**
   * Gives a repeat the outcome of its earlier publish. An earlier connection of a stored session may still be searching the chain for the event, and may
   * publish the event only afterwards. So for a stored session, the returned promise resolves when the outcome is known.
   */
  #join(pending: Pending, earlier: Promise<PublishOutcome>): Promise<void> | undefined {
    const settled = earlier.then((outcome) => this.#settle(pending, outcome));
    return this.#parts.session.isStored ? settled : undefined;
  }

  /** Returns the callback for the outcome. With QoS 2 the session remembers the identifier until the client releases it. */
  #remember(pending: Pending | undefined, topic: string): OnSettled {
    if (pending === undefined) {
      return (outcome) => {
        if (outcome.status === "REFUSED") this.#parts.onLost(topic, toBrokerError(outcome.error));
      };
    }
    if (pending.qos === 1) return (outcome) => this.#settle(pending, outcome);
    const { inbound } = this.#parts.session;
    const { promise, resolve } = createDeferred<PublishOutcome>();
    inbound.set(pending.packetId, promise);
    return (outcome) => {
      // The publish failed, or its outcome is unknown: a repeat is published again.
      if (outcome.status !== "SUCCESS") inbound.delete(pending.packetId);
      resolve(outcome);
      this.#settle(pending, outcome);
    };
  }

  #resolveTopic({ topic, properties }: PublishPacket): string {
    const { topicAlias } = properties;
    if (topicAlias === undefined) return topic;
    const { topicAliasMax } = this.#parts.settings;
    if (topicAlias > topicAliasMax) {
      throw new PacketError(
        reason.topicAliasInvalid,
        `topic alias ${topicAlias} is over the limit of ${topicAliasMax} (mqttTopicAliasMax)`,
      );
    }
    const known = topic === "" ? this.#aliases.get(topicAlias) : topic;
    if (known === undefined) throw protocolError(`topic alias ${topicAlias} has no topic yet`);
    if (topic !== "") this.#aliases.set(topicAlias, isTopicName(topic) ? topic : shortenRefused(topic));
    return known;
  }

  #toCall(packet: PublishPacket, topic: string): PublishCall {
    const { groupId, settings, session } = this.#parts;
    const { extensionPrefix: prefix } = settings;
    const origin = session.originFor(topic);
    const isNamed = packet.qos === 2 && session.isStored;
    // A copy, since the content outlives the buffer of received bytes. Short copies share a buffer.
    const content = Buffer.from(packet.payload);
    return {
      topic,
      groupId,
      content,
      extensions: toExtensions(packet, { prefix, now: Date.now(), origin }),
      mayBeEmpty: true,
      ...(isNamed && { key: String(packet.packetId), session: session.keys, isRepeat: packet.isDuplicate }),
    };
  }

  #settle(pending: Pending, outcome: PublishOutcome): void {
    pending.outcome = outcome;
    if (outcome.status !== "SUCCESS") this.#unreported += 1;
    for (let [first] = this.#pending; first?.outcome !== undefined; [first] = this.#pending) {
      this.#pending.shift();
      if (first.outcome.status !== "SUCCESS") this.#unreported -= 1;
      this.#answer(first, first.outcome);
    }
    if (this.#unreported > 0) return;
    this.#reported?.resolve();
    this.#reported = undefined;
  }

  /**
   * If the outcome of the publish is unknown, or this node cannot reach the store, ends the connection instead of refusing the publish. An MQTT 5.0 client
   * never repeats a refused publish, but repeats an unanswered one over its next connection.
   */
  #answer({ packetId, qos }: Pending, outcome: PublishOutcome): void {
    const { knowsReceiveMax, onAnswer, onUnknown } = this.#parts;
    this.#credit?.resolve();
    this.#credit = undefined;
    if (knowsReceiveMax) {
      if (qos === 1) this.#unacknowledged -= 1;
      else if (outcome.status === "REFUSED") this.#unreleased.delete(packetId); // no PUBREL follows (section 4.3.3)
    }
    if (this.#isClosed) return;
    const error = outcome.status === "REFUSED" ? toBrokerError(outcome.error) : undefined;
    if (outcome.status === "TIMEOUT" || isBrokerError(error, "storeUnreachable")) return onUnknown(error);
    if (error === undefined) return onAnswer({ packetId, qos, reasonCode: reason.success, error });
    const reasonCode = isBrokerError(error, "topicNotExist") ? reason.topicNameInvalid : toReasonCode(error);
    onAnswer({ packetId, qos, reasonCode, error });
  }
}

/** The start of a refused topic name, kept for its alias because names may be long. It is refused too: it is the whole name, or longer than any topic name. */
function shortenRefused(topic: string): string {
  return copyOf(topic.slice(0, topicCharactersMax + 1));
}

/** Whether the broker could not find out if an earlier connection published a repeated message. */
function isUncertain(outcome: PublishOutcome): boolean {
  if (outcome.status !== "REFUSED") return false;
  const { error } = outcome;
  return (["storeUnreachable", "chainUnreachable", "busy"] as const).some((name) => isBrokerError(error, name));
}
