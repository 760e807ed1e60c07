import { BrokerError } from "@stele/wire";
import type { Extensions } from "../../domain/event.ts";
import { extensionsBytes } from "../../domain/event-rules.ts";
import { parseTopicName, type TopicName } from "../../domain/topic-name.ts";
import type { OnSettled, PublishCall, ReleaseCall } from "../broker.ts";
import type { Groups } from "../group.ts";
import type { EngineLimits } from "../limits.ts";
import type { Batcher, TopicEvent } from "./batcher.ts";
import { tokenExample, toTokenKey } from "./token-key.ts";

export interface InletParts {
  readonly groups: Groups;
  readonly limits: EngineLimits;
  /** What every extension key begins with. */
  readonly extensionPrefix: string;
}

/** Where gateways publish: it checks what a producer wants published and hands it on at once. */
export class Inlet {
  readonly #parts: InletParts;

  constructor(parts: InletParts) {
    this.#parts = parts;
  }

  /**
   * As `Broker.submit` says.
   * @throws BrokerError 100102, 100103, 100106, 100114, 100200, 100201, 100204, 100206, 100306, 200001, 200205, 200211, 200300.
   */
  submit(call: PublishCall, onSettled: OnSettled): void {
    const name = this.check(call);
    const { topics, batcher, once } = this.#parts.groups.get(call.groupId);
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
    topics.read(name, (found) => {
      if (found instanceof BrokerError) onSettled({ status: "REFUSED", error: found });
      else addLate({ topic: found, payload, onSettled }, batcher);
    });
  }

  /** As `Broker.release` says. */
  release({ groupId, sessionId, key }: ReleaseCall): Promise<boolean> {
    const { id, keyReleases } = this.#parts.groups.get(groupId);
    return keyReleases.release({ groupId: id, scope: scopeOf(sessionId), key });
  }

  /** As `Broker.whenRoom` says. */
  whenRoom(groupId: string | undefined, callback: () => void): boolean {
    const { batcher } = this.#parts.groups.get(groupId);
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
    const tokenKey = toTokenKey(this.#parts.extensionPrefix);
    if (extensions.some(([name]) => name === tokenKey)) {
      throw new BrokerError("parameterInvalid", { details: `the broker sets ${tokenKey} of a publish with a key` });
    }
    return [...extensions, [tokenKey, tokenExample]];
  }

  #checkContent({ content, mayBeEmpty }: PublishCall): void {
    const { contentBytesMax } = this.#parts.limits;
    if (content.byteLength === 0 && mayBeEmpty !== true) throw new BrokerError("contentBlank");
    if (content.byteLength > contentBytesMax) {
      throw new BrokerError("contentTooLong", { details: `${content.byteLength} bytes, at most ${contentBytesMax}` });
    }
  }

  #checkExtensions(extensions: Extensions): void {
    const { extensionPrefix, limits } = this.#parts;
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

/** Everybody who calls is the same principal as yet. */
const callersScope = "";

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
