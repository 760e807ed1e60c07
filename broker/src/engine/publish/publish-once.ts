import { BrokerError, encodedBytes, type EventId, publishDigest, quote } from "@stele/wire";
import { blockOf, endOfBlock, type Position, positionZero } from "../../domain/position.ts";
import type { GroupId } from "../../domain/group-id.ts";
import { pause } from "../../lib/pause.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Randomness } from "../../ports/randomness.ts";
import type { DamagedKeyRow, PublishKeyRow, PublishKeys, TakenKey } from "../../ports/publish-keys.ts";
import { reorganisationBlocksMax } from "../../ports/store.ts";
import type { OnSettled, PublishOutcome } from "../broker.ts";
import type { EngineLimits } from "../limits.ts";
import { Deadline } from "../time.ts";
import type { Batcher } from "./batcher.ts";
import type { ClaimRecorder } from "./claim-recorder.ts";
import {
  isSurelyUnpublished,
  type KeyedPublish,
  PendingPublish,
  type PendingPublishOptions,
} from "./pending-publish.ts";
import type { KeyJanitor } from "./key-janitor.ts";
import type { OpenTopic, OpenTopics } from "./open-topics.ts";
import type { PublishFate } from "./publish-fate.ts";
import { toIdentity, toSessionIdentity } from "./publish-identity.ts";
import type { TokenSearch } from "./token-search.ts";

/** Longest publish key, in characters. */
const publishKeyCharactersMax = 255;
const keyPattern = new RegExp(`^[\\x21-\\x7e]{1,${publishKeyCharactersMax}}$`);

/** How long a repeat waits, in milliseconds, before it looks again for an event that may still come. */
const lookAgainMs = 500;

/** Shortest time that a repeat has to look for its event, in milliseconds: on a chain with reorgs, it asks twice whether the event may still come. */
const searchMsMin = 3_000;

/** Limit of waiting callers and bytes, as a multiple of the limits of waiting publishes: as many repeats as first requests may wait. */
const callersPerWaitingMax = 2;

export interface PublishOnceOptions {
  readonly groupId: GroupId;
  readonly topics: Pick<OpenTopics, "find" | "read">;
  readonly batcher: Pick<Batcher, "add">;
  readonly keys: PublishKeys;
  readonly recorder: Pick<ClaimRecorder, "free">;
  readonly search: TokenSearch;
  readonly fate: PublishFate;
  readonly janitor: KeyJanitor;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly logger: Logger;
  readonly limits: Pick<EngineLimits, "publishesWaitingMax" | "publishBytesWaitingMax" | "transactionTimeoutMs">;
  readonly extensionPrefix: string;
  /** Key of the extension that carries the token. */
  readonly tokenKey: string;
  /** Whether the chain can have reorgs. */
  readonly mayReorganise: boolean;
}

/**
 * Publishes with keys: each key gives one event, however often the request is repeated. The key is recorded with a random token
 * before the ledger gets the event, which carries the token. A repeat looks for the token in the topic. It publishes again only if no transaction can
 * still bring the event.
 */
export class PublishOnce {
  readonly #options: PublishOnceOptions;
  /** Publishes in progress, by scope and key. A repeat that comes meanwhile gets the same outcome. */
  readonly #current = new Map<string, PendingPublish>();
  #callers = 0;
  /** Bytes of content and extensions of the publishes in progress. */
  #bytes = 0;

  constructor(options: PublishOnceOptions) {
    this.#options = options;
  }

  /**
   * As `Broker.submit` says.
   * @throws BrokerError 200001 if the key is malformed; 100114 if a different request with the same key is in progress; 200300 if too much waits; 200207 if
   * this node is not a member.
   */
  submit({ name, payload, scope, key, session, open, onPlaced, refusal }: KeyedPublish, onSettled: OnSettled): void {
    const { limits, groupId, randomness, fate, clock, logger, extensionPrefix } = this.#options;
    if (!keyPattern.test(key)) throw malformedKey(key);
    if (this.#callers >= callersPerWaitingMax * limits.publishesWaitingMax) {
      throw new BrokerError("busy", { details: `${this.#callers} publishes with a key wait` });
    }
    const { content, extensions } = payload;
    const toOwn = session === undefined ? toIdentity : toSessionIdentity;
    const identity = toOwn(extensions, extensionPrefix);
    const digest = publishDigest({ topic: name, content, extensions: identity });
    const id = JSON.stringify([scope, key]);
    const known = this.#current.get(id);
    if (known !== undefined) {
      if (known.digest !== digest) throw reusedKey(key);
      known.join(onSettled);
      onPlaced?.();
    } else {
      const bytesMax = callersPerWaitingMax * limits.publishBytesWaitingMax;
      if (this.#bytes + encodedBytes(payload) > bytesMax) {
        throw new BrokerError("busy", { details: `publishes with a key of ${this.#bytes} bytes wait` });
      }
      const row = { groupId, scope, key, token: randomness.uuid(), topic: name, digest, sender: fate.sender };
      const onTaken: PendingPublishOptions["onTaken"] = (pending, taken) => void this.#repeat(pending, taken);
      const since = clock.monotonic();
      const own = { mayStart: fate.startCheck(), since, logger, onTaken };
      const options = { row, payload, session, open, onPlaced, refusal, ...own };
      this.#begin(id, new PendingPublish(options, onSettled));
    }
    this.#callers += 1;
  }

  #begin(id: string, pending: PendingPublish): void {
    const bytes = encodedBytes(pending.payload);
    this.#current.set(id, pending);
    this.#bytes += bytes;
    const end = (): void => {
      this.#current.delete(id);
      this.#bytes -= bytes;
    };
    pending.onFinished = (callers) => {
      end();
      this.#callers -= callers;
    };
    try {
      this.#start(pending);
    } catch (error) {
      end();
      throw error;
    }
  }

  #start(pending: PendingPublish): void {
    const { topics, janitor } = this.#options;
    const { isOfSession, isOfWill } = pending;
    const refusal = pending.refusal ?? janitor.refusalOf({ scope: pending.row.scope, isOfSession, isOfWill });
    if (refusal !== undefined) {
      void this.#findEarlier(pending, refusal);
      return;
    }
    const topic = topics.find(pending.row.topic);
    if (topic !== undefined) {
      this.#add(pending, topic);
      return;
    }
    const onFound = (found: OpenTopic | BrokerError): void => {
      if (found instanceof BrokerError) void this.#findEarlier(pending, found);
      else this.#addLate(pending, found);
    };
    topics.read(pending.row.topic, { bytes: encodedBytes(pending.payload), onFound, open: pending.open });
  }

  /** @throws BrokerError 200207, 200300. */
  #add(pending: PendingPublish, topic: OpenTopic): void {
    const { batcher, tokenKey } = this.#options;
    const { content, extensions } = pending.payload;
    const payload = { content, extensions: [...extensions, [tokenKey, pending.row.token] as const] };
    pending.topic = topic;
    batcher.add({ topic, payload, claim: pending, onSettled: (outcome) => void this.#onSettled(pending, outcome) });
    pending.placed();
  }

  #addLate(pending: PendingPublish, topic: OpenTopic): void {
    try {
      this.#add(pending, topic);
    } catch (error) {
      pending.finish({ status: "REFUSED", error });
    }
  }

  /** For a request that cannot publish now: answers with the event of an earlier request, or else with `refusal`. */
  async #findEarlier(pending: PendingPublish, refusal: BrokerError): Promise<void> {
    try {
      const row = await this.#options.keys.findPublishKey(pending.row);
      if (row === undefined) pending.finish({ status: "REFUSED", error: refusal });
      else await this.#repeat(pending, row, refusal);
    } catch (error) {
      pending.finish({ status: "REFUSED", error });
    }
  }

  /** First frees the key, if nothing was published under it, nothing will be, and this node is still a member. Then answers the callers. */
  async #onSettled(pending: PendingPublish, outcome: PublishOutcome): Promise<void> {
    const { keys, recorder, janitor, logger, search } = this.#options;
    if (pending.isRecorded) janitor.adjustCount(pending.row.scope, 1);
    if (outcome.status === "SUCCESS" && outcome.eventId !== "") search.note(pending.row.token, outcome.eventId);
    const isLive = pending.mayStart?.() ?? true;
    if (isLive && pending.isRecorded && outcome.status === "REFUSED" && isSurelyUnpublished(outcome.error)) {
      try {
        await keys.releasePublishKeys([pending.row]);
        janitor.adjustCount(pending.row.scope, -1);
      } catch (error) {
        logger.debug("publish key not released, trying again", { error });
        recorder.free(pending);
      }
    }
    pending.finish(outcome);
  }

  /** Answers a request whose key has a row. Never rejects. */
  async #repeat(pending: PendingPublish, row: TakenKey, refusal?: BrokerError): Promise<void> {
    try {
      if ("isDamaged" in row) throw damagedKey(row);
      if ("isFenced" in row) return pending.finish({ topic: pending.row.topic, eventId: "", status: "TIMEOUT" });
      if (row.digest !== pending.digest) throw (pending.isOfSession ? refusal : undefined) ?? reusedKey(row.key);
      const { clock, limits } = this.#options;
      using deadline = new Deadline(clock, Math.max(searchMsMin, limits.transactionTimeoutMs));
      const eventId = await this.#findEvent(row, deadline.signal);
      if (eventId === "unknown") pending.finish({ topic: row.topic, eventId: "", status: "TIMEOUT" });
      else if (eventId !== undefined) pending.finish({ topic: row.topic, eventId, status: "SUCCESS" });
      else await this.#publishAgain(pending, row, refusal);
    } catch (error) {
      pending.finish({ status: "REFUSED", error });
    }
  }

  /**
   * The event of a row. Undefined if it can no longer come; `unknown` if that is not certain before `signal` aborts. The second look also searches earlier
   * blocks, where a reorg may have moved the event: while the node that recorded the key lives, another node cannot find out that the publish has settled.
   */
  async #findEvent(row: PublishKeyRow, signal: AbortSignal): Promise<EventId | "unknown" | undefined> {
    const { search, fate, clock } = this.#options;
    for (let looks = 1; !signal.aborted; looks += 1) {
      const found = await search.find(row, looks === 2 ? this.#earliestAfter(row) : row.after, signal);
      if (found !== undefined) return found;
      const generation = await fate.settledGeneration(row, signal);
      if (generation !== undefined) {
        const event = await search.find(row, this.#earliestAfter(row), signal);
        if (event !== undefined) return event;
        if (!signal.aborted && (await fate.isStillGeneration(generation))) return undefined;
      }
      await pause(clock, lookAgainMs, signal);
    }
    return "unknown";
  }

  /** After a reorg, the event may be in a block below the head that the index had when the key was recorded. */
  #earliestAfter({ after }: PublishKeyRow): Position {
    return this.#options.mayReorganise ? beforeReorgs(after) : after;
  }

  /** Publishes with the token of the row: if one publish did give two events, a reader can recognize them. */
  async #publishAgain(pending: PendingPublish, row: PublishKeyRow, refusal: BrokerError | undefined): Promise<void> {
    if (refusal !== undefined) throw refusal;
    const { sender } = pending.row; // Another node may take the row over once this membership has ended: then `pending` may not start.
    const isMine = row.sender === sender || (await this.#options.keys.movePublishKey(row, sender));
    if (!isMine || pending.topic === undefined) {
      pending.finish({ topic: row.topic, eventId: "", status: "TIMEOUT" }); // Another node was faster.
      return;
    }
    pending.takeRow({ ...row, sender });
    this.#add(pending, pending.topic);
  }
}

function beforeReorgs(after: Position): Position {
  const block = blockOf(after) - reorganisationBlocksMax;
  return block < 0 ? positionZero : endOfBlock(block);
}

function malformedKey(key: string): BrokerError {
  const details = `the publish key ${quote(key)} is not 1 to ${publishKeyCharactersMax} visible ASCII characters`;
  return new BrokerError("parameterInvalid", { details });
}

function reusedKey(key: string): BrokerError {
  return new BrokerError("publishKeyReused", { details: `${quote(key)}: topic, content or extensions differ` });
}

/** The error for a key whose row is damaged: the outcome of its publish is unknown. */
function damagedKey({ key }: DamagedKeyRow): BrokerError {
  const details = `the row of publish key ${quote(key)} is damaged; look for the event in the topic, and use another key`;
  return new BrokerError("indexDamaged", { details });
}
