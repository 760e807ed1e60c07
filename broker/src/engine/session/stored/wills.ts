import { isBrokerError } from "@stele/wire";
import type { Extensions } from "../../../domain/event.ts";
import { sessionMarks } from "../../../domain/session-filter.ts";
import type { BoundedLog } from "../../../lib/bounded-log.ts";
import type { Logger } from "../../../lib/logger.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Access } from "../../access/access.ts";
import type { Caller } from "../../access/caller.ts";
import { CountedOpening, type TopicQuota } from "../../access/topic-quota.ts";
import type { OnSettled, PublishCall, PublishOutcome, WillRequest } from "../../broker.ts";
import type { Groups } from "../../group.ts";
import type { ReleaseCall } from "../../key-session.ts";
import { createSessionLog } from "./session-log.ts";

export interface WillsParts {
  readonly access: Access;
  readonly topicQuota: Pick<TopicQuota, "reserve">;
  readonly groups: Pick<Groups, "get">;
  readonly inlet: {
    submit(
      call: PublishCall,
      onSettled: OnSettled,
      options: { readonly authorizeOpening: (() => Promise<void>) | undefined },
    ): void;
    release(call: ReleaseCall): Promise<unknown>;
    check(call: PublishCall): unknown;
  };
  readonly clock: Clock;
  readonly logger: Logger;
  readonly extensionPrefix: string;
}

/** Names the publish of a will, so that a repeat after a timeout publishes nothing twice. */
export type WillName = Pick<ReleaseCall, "key" | "session">;

/** Maximum number of characters of a client's topic in a log line. */
const loggedTopicCharactersMax = 100;

/** Errors of a broker that is overloaded, or cannot reach its chain or database. Nothing was published. */
const passing = ["busy", "chainUnreachable", "storeUnreachable"] as const;

/** Publishes wills, with the rights that their owners have now: a will outlasts a token. Failures go to the log, because the clients are gone. */
export class Wills {
  readonly #parts: WillsParts;
  readonly #log: BoundedLog;

  constructor(parts: WillsParts) {
    this.#parts = parts;
    this.#log = createSessionLog(parts);
  }

  /** Checks a will with all extensions that it is published with: when it is due, nobody is left who could change it. @throws BrokerError as `Inlet.check`. */
  check(will: WillRequest): void {
    this.#parts.inlet.check({ ...will.call, key: "will", extensions: this.#extensionsOf(will) });
  }

  /**
   * Publishes a will. Returns whether it is settled: published, or refused for a reason that does not pass by itself. Never rejects. A will with a name is
   * published once, however often and at however many nodes this is called. A will without a name is also settled if its fate is unknown.
   */
  async publish(will: WillRequest, owner: string, name?: WillName): Promise<boolean> {
    const { access, logger } = this.#parts;
    const caller: Caller = {
      principal: access.recall(owner),
      address: undefined,
      protocol: "MQTT",
      signal: unaborted,
    };
    const { call } = will;
    try {
      access.authorize(caller, "publish", call);
      const named = { ...call, ...name, extensions: this.#extensionsOf(will) };
      const outcome = await this.#submit(named, will.opensTopic ? caller : undefined);
      if (outcome.status === "REFUSED") throw outcome.error;
      return outcome.status === "SUCCESS" || name === undefined;
    } catch (error) {
      const topic = call.topic.slice(0, loggedTopicCharactersMax);
      const isPassing = isPassingError(error);
      if (isPassing) logger.debug("will not published yet", { topic, error });
      else this.#log.warn("will not published", { topic, error });
      return !isPassing;
    }
  }

  /** Frees the name of a will that nobody publishes again, so that the names of wills do not use up the room for publish keys. Never rejects. */
  async forget({ call: { groupId } }: WillRequest, name: WillName): Promise<void> {
    const { inlet, logger } = this.#parts;
    try {
      await inlet.release({ groupId, ...name });
    } catch (error) {
      logger.debug("name of a will not freed", { error }); // It expires later.
    }
  }

  /** Publishes, and opens a missing topic for `opener`. */
  #submit(call: PublishCall, opener: Caller | undefined): Promise<PublishOutcome> {
    const opening = new CountedOpening();
    const authorizeOpening = opener && (() => this.#authorizeOpening(opener, call, opening));
    return new Promise((resolve) => {
      const settled: OnSettled = (outcome) => {
        opening.settled(outcome);
        resolve(outcome);
      };
      this.#parts.inlet.submit(call, settled, { authorizeOpening });
    });
  }

  /** @throws BrokerError 100702, 200301. */
  async #authorizeOpening(opener: Caller, call: PublishCall, opening: CountedOpening): Promise<void> {
    const { access, groups, topicQuota } = this.#parts;
    access.authorize(opener, "open", call);
    const { id: groupId } = groups.get(call.groupId);
    await opening.begin(topicQuota.reserve(opener, { groupId, name: call.topic }));
  }

  /** The extensions with the time at which the will expires, counted from now. */
  #extensionsOf({ call, expiresAfterMs }: WillRequest): Extensions {
    if (expiresAfterMs === undefined) return call.extensions;
    const { clock, extensionPrefix } = this.#parts;
    return [...call.extensions, [extensionPrefix + sessionMarks.expiresAt, String(clock.now() + expiresAfterMs)]];
  }
}

const unaborted = new AbortController().signal;

function isPassingError(error: unknown): boolean {
  return passing.some((one) => isBrokerError(error, one));
}
