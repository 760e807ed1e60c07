import { BrokerError, encodedBytes, isBrokerError, toBrokerError } from "@stele/wire";
import { type Event, type EventPayload, type Extensions, toPassingEvent } from "../../domain/event.ts";
import { extensionsBytes } from "../../domain/event-rules.ts";
import type { GroupId } from "../../domain/group-id.ts";
import { parseTopicName, type TopicName } from "../../domain/topic-name.ts";
import type { Clock } from "../../ports/clock.ts";
import { sessionScopeOf } from "../../ports/publish-keys.ts";
import type { OnSettled, OnTransactionSettled, PublishCall, PublishOutcome } from "../broker.ts";
import type { ReleaseCall } from "../key-session.ts";
import type { Group, Groups } from "../group.ts";
import type { EngineLimits } from "../limits.ts";
import type { Batcher, TopicEvent } from "./batcher.ts";
import { FirstPublish } from "./first-publish.ts";
import type { OpenTopic } from "./open-topics.ts";
import type { KeyedPublish } from "./pending-publish.ts";
import { tokenExample, toTokenKey } from "./token-key.ts";

export interface InletOptions {
  readonly groups: Groups;
  readonly limits: EngineLimits;
  readonly clock: Clock;
  /** Passes an event to the connected sessions without committing it. */
  readonly onPassed: (groupId: GroupId, event: Event) => Promise<void> | undefined;
  /** The prefix of every extension key. */
  readonly extensionPrefix: string;
}

export interface SubmitOptions {
  /** The scope in which a publish key without a session is unique. */
  readonly keyScope?: string;
  /** Called before a missing topic is opened for the publish; throws or rejects to refuse. Undefined if the publish must not open a topic. */
  readonly authorizeOpening?: (() => void | Promise<void>) | undefined;
}

export type Refusal = Extract<PublishOutcome, { readonly status: "REFUSED" }>;

export interface RefusedOptions extends Required<Pick<SubmitOptions, "keyScope">> {
  readonly refusal: Refusal;
}

/** A publish whose topic is not in memory. */
interface FirstSubmission {
  readonly call: PublishCall;
  readonly group: Group;
  readonly name: TopicName;
  readonly payload: EventPayload;
}

/** The gateways' entry for publishes: checks each one and passes it on at once. */
export class Inlet {
  readonly #options: InletOptions;

  constructor(options: InletOptions) {
    this.#options = options;
  }

  /**
   * As `Broker.submit` says.
   * @throws BrokerError 100102, 100103, 100106, 100114, 100200, 100201, 100204, 100206, 100306, 200001, 200205, 200207, 200211, 200300.
   */
  submit(call: PublishCall, onSettled: OnSettled, options: SubmitOptions = {}): void {
    const name = parseTopicName(call.topic);
    const refusal = this.#findOverLimit(call);
    const group = this.#options.groups.get(call.groupId);
    const payload = { content: call.content, extensions: call.extensions };
    if (refusal !== undefined && call.key !== undefined) {
      group.once.submit({ ...toKeyed(call, { name, payload, key: call.key }, options), refusal }, onSettled);
      return;
    }
    const topic = group.topics.find(name);
    if (topic === undefined) {
      this.#submitFirst({ call, group, name, payload }, onSettled, options);
      return;
    }
    if (call.key === undefined) group.batcher.add({ topic, payload, onSettled });
    else group.once.submit(toKeyed(call, { name, payload, key: call.key }, options), onSettled);
    call.placement?.onPlaced();
  }

  /** Settles a publish with a key that is refused: with the event of an earlier request under the key, or else with `refusal`. Never throws. */
  submitRefused(call: PublishCall, onSettled: OnSettled, { keyScope, refusal }: RefusedOptions): void {
    const { key, content, extensions } = call;
    try {
      const name = parseTopicName(call.topic);
      this.#findOverLimit(call); // Other faults of the call are answered before `refusal`.
      const { once } = this.#options.groups.get(call.groupId);
      if (key === undefined) throw refusal.error;
      const keyed = toKeyed(call, { name, payload: { content, extensions }, key }, { keyScope });
      once.submit({ ...keyed, refusal: toBrokerError(refusal.error) }, onSettled);
    } catch (error) {
      onSettled({ status: "REFUSED", error });
    }
  }

  /** Reads the topic from the index; the publish may open it. */
  #submitFirst({ call, group, name, payload }: FirstSubmission, onSettled: OnSettled, options: SubmitOptions): void {
    const { topics, batcher, once, ledger, openings, limits } = group;
    const { authorizeOpening } = options;
    const { clock } = this.#options;
    const onPlaced = call.placement?.onPlaced;
    const waitMsMax = limits.transactionTimeoutMs;
    const first = authorizeOpening && new FirstPublish({ ledger, openings, authorizeOpening, clock, waitMsMax });
    const settle = first?.follow(onSettled) ?? onSettled;
    const open = first && ((missing: TopicName) => first.open(missing));
    if (call.key !== undefined) {
      once.submit({ ...toKeyed(call, { name, payload, key: call.key }, options), open, onPlaced }, settle);
      return;
    }
    const onFound = (found: OpenTopic | BrokerError): void => {
      if (found instanceof BrokerError) {
        settle({ status: "REFUSED", error: found });
        return;
      }
      addLate({ topic: found, payload, onSettled: settle }, batcher);
      onPlaced?.();
    };
    topics.read(name, { bytes: encodedBytes(payload), onFound, open });
  }

  /** Forgets the publish keys of a session that has ended, even if the group accepts no calls. Never rejects. */
  forget(groupId: string, sessionId: string): Promise<void> {
    return this.#options.groups.getAny(groupId).keyJanitor.drop(sessionScopeOf(sessionId));
  }

  /** As `Broker.submitAll` says. @throws BrokerError as {@link submit} does; 200001 for keys or several groups. */
  submitAll(calls: readonly PublishCall[], onSettled: OnTransactionSettled): void {
    const groups = new Set<Group>();
    const events = calls.map((call) => {
      const name = this.check(call);
      if (call.key !== undefined) throw malformed("a publish of a transaction has no key of its own");
      groups.add(this.#options.groups.get(call.groupId));
      return { name, payload: { content: call.content, extensions: call.extensions } };
    });
    const [group] = groups;
    if (groups.size > 1) throw malformed("the events of a transaction belong to one group");
    if (group === undefined) queueMicrotask(() => onSettled({ status: "SUCCESS", results: [] }));
    else group.transactions.submit(events, onSettled);
  }

  /** As `Broker.release` says. */
  release({ groupId, session, key }: ReleaseCall): Promise<boolean> {
    const { id, keyReleases } = this.#options.groups.get(groupId);
    return keyReleases.release({ groupId: id, scope: sessionScopeOf(session.id), key }, session);
  }

  /** As `Broker.whenRoom` says. */
  whenRoom(calls: readonly PublishCall[], callback: () => void): boolean {
    const { batcher } = this.#options.groups.get(calls[0]?.groupId);
    const bytes = calls.reduce((sum, call) => sum + encodedBytes(call), 0);
    return batcher.whenRoom({ count: calls.length, bytes }, callback);
  }

  /** As `Broker.pass` says. @throws BrokerError 100102, 100103, 100106, 100200, 100201, 100204, 100206, 200211, 200300. */
  pass(call: PublishCall): Promise<void> | undefined {
    const name = this.check(call);
    const { id } = this.#options.groups.get(call.groupId);
    return this.#options.onPassed(id, toPassingEvent(name, { content: call.content, extensions: call.extensions }));
  }

  /**
   * Checks a call without publishing it, and returns its topic. @throws BrokerError 100102, 100103, 100106, 100200, 100201, 100204, 100206; 200001 if a call
   * with a key sets the token.
   */
  check(call: PublishCall): TopicName {
    const name = parseTopicName(call.topic);
    this.#checkPayload(call);
    return name;
  }

  #checkPayload(call: PublishCall): void {
    this.#checkContent(call);
    if (call.extensions.length > 0 || call.key !== undefined) this.#checkExtensions(this.#extensionsOf(call));
  }

  /** The refusal of a call that has a key and is over a limit: it may repeat a publish from before the limit was lowered. @throws every other refusal. */
  #findOverLimit(call: PublishCall): BrokerError | undefined {
    try {
      this.#checkPayload(call);
      return undefined;
    } catch (error) {
      const isOver = isBrokerError(error, "contentTooLong") || isBrokerError(error, "extensionsTooLong");
      if (call.key === undefined || !isOver) throw error;
      return error;
    }
  }

  /** The extensions to publish, including the token of a publish with a key. */
  #extensionsOf({ key, extensions }: PublishCall): Extensions {
    if (key === undefined) return extensions;
    const tokenKey = toTokenKey(this.#options.extensionPrefix);
    if (extensions.some(([name]) => name === tokenKey)) {
      throw new BrokerError("parameterInvalid", { details: `the broker sets ${tokenKey} of a publish with a key` });
    }
    return [...extensions, [tokenKey, tokenExample]];
  }

  #checkContent({ content, mayBeEmpty }: PublishCall): void {
    const { contentBytesMax } = this.#options.limits;
    if (content.byteLength === 0 && mayBeEmpty !== true) throw new BrokerError("contentBlank");
    if (content.byteLength > contentBytesMax) {
      throw new BrokerError("contentTooLong", { details: `${content.byteLength} bytes, at most ${contentBytesMax}` });
    }
  }

  #checkExtensions(extensions: Extensions): void {
    const { extensionPrefix, limits } = this.#options;
    for (const [key] of extensions) {
      if (!key.startsWith(extensionPrefix)) {
        throw new BrokerError("extensionKeyInvalid", {
          details: `${JSON.stringify(key)} does not begin with ${extensionPrefix}`,
        });
      }
    }
    const bytes = extensionsBytes(extensions);
    if (bytes > limits.extensionsBytesMax) {
      throw new BrokerError("extensionsTooLong", { details: `${bytes} bytes, at most ${limits.extensionsBytesMax}` });
    }
  }
}

function malformed(details: string): BrokerError {
  return new BrokerError("parameterInvalid", { details });
}

function toKeyed(
  { session }: PublishCall,
  { name, payload, key }: Pick<KeyedPublish, "name" | "payload" | "key">,
  { keyScope = "" }: SubmitOptions,
): KeyedPublish {
  return { name, payload, key, session, scope: session === undefined ? keyScope : sessionScopeOf(session.id) };
}

/** Adds a publish whose topic had to be read first. `submit` has returned, so the callback gets the error. */
function addLate(event: TopicEvent, batcher: Pick<Batcher, "add">): void {
  try {
    batcher.add(event);
  } catch (error) {
    event.onSettled({ status: "REFUSED", error });
  }
}
