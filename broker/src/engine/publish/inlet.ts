import { BrokerError, encodedBytes } from "@stele/wire";
import type { Extensions } from "../../domain/event.ts";
import { extensionsBytes } from "../../domain/event-rules.ts";
import { parseTopicName, type TopicName } from "../../domain/topic-name.ts";
import type { OnSettled, OnTransactionSettled, PublishCall, ReleaseCall } from "../broker.ts";
import type { Group, Groups } from "../group.ts";
import type { EngineLimits } from "../limits.ts";
import type { Batcher, TopicEvent } from "./batcher.ts";
import type { OpenTopic } from "./open-topics.ts";
import { tokenExample, toTokenKey } from "./token-key.ts";

export interface InletOptions {
  readonly groups: Groups;
  readonly limits: EngineLimits;
  /** What every extension key begins with. */
  readonly extensionPrefix: string;
}

/** Where gateways publish: it checks what a producer wants published and hands it on at once. */
export class Inlet {
  readonly #options: InletOptions;

  constructor(options: InletOptions) {
    this.#options = options;
  }

  /**
   * As `Broker.submit` says. A key that is not a session's is unique in `callersScope`.
   * @throws BrokerError 100102, 100103, 100106, 100114, 100200, 100201, 100204, 100206, 100306, 200001, 200205, 200211, 200300.
   */
  submit(call: PublishCall, onSettled: OnSettled, callersScope = ""): void {
    const name = this.check(call);
    const { topics, batcher, once } = this.#options.groups.get(call.groupId);
    const payload = { content: call.content, extensions: call.extensions };
    if (call.key !== undefined) {
      const isOfSession = call.sessionId !== undefined;
      const scope = isOfSession ? scopeOf(call.sessionId) : callersScope;
      once.submit({ name, payload, scope, key: call.key, isOfSession }, onSettled);
      return;
    }
    const topic = topics.find(name);
    if (topic !== undefined) {
      batcher.add({ topic, payload, onSettled });
      return;
    }
    const onFound = (found: OpenTopic | BrokerError): void => {
      if (found instanceof BrokerError) onSettled({ status: "REFUSED", error: found });
      else addLate({ topic: found, payload, onSettled }, batcher);
    };
    topics.read(name, { bytes: encodedBytes(payload), onFound });
  }

  /** A session has ended: its publish keys are forgotten. Never rejects. */
  forget(groupId: string, sessionId: string): Promise<void> {
    return this.#options.groups.get(groupId).keyJanitor.drop(scopeOf(sessionId));
  }

  /** As `Broker.submitAll` says. @throws BrokerError as {@link submit} does; 200001 keys, or several groups. */
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
  release({ groupId, sessionId, key }: ReleaseCall): Promise<boolean> {
    const { id, keyReleases } = this.#options.groups.get(groupId);
    return keyReleases.release({ groupId: id, scope: scopeOf(sessionId), key });
  }

  /** As `Broker.whenRoom` says. */
  whenRoom(groupId: string | undefined, callback: () => void): boolean {
    const { batcher } = this.#options.groups.get(groupId);
    if (batcher.hasRoom) return true;
    batcher.onRoom(callback);
    return false;
  }

  /** Whether the call could be published as it is written. @throws BrokerError 100102, 100103, 100106, 100200, 100201, 100204, 100206. */
  check(call: PublishCall): TopicName {
    const name = parseTopicName(call.topic);
    this.#checkContent(call);
    if (call.extensions.length > 0 || call.key !== undefined) this.#checkExtensions(this.#extensionsOf(call));
    return name;
  }

  /** With the token, which a named publish carries too. */
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

function scopeOf(sessionId: string): string {
  return `session ${sessionId}`;
}

/** Adds what had to wait for its topic: nobody is left to throw at. */
function addLate(event: TopicEvent, batcher: Pick<Batcher, "add">): void {
  try {
    batcher.add(event);
  } catch (error) {
    event.onSettled({ status: "REFUSED", error });
  }
}
